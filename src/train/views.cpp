#include "train/views.h"

#include <ATen/ATen.h>

namespace rankscope {

using at::Tensor;

ParameterViews::ParameterViews(const Layout& layout, const Tensor& flat, bool gradients, bool merged)
    : merged_(merged), trials_(flat.dim() == 2 ? flat.size(0) : -1) {
  const auto& slots = layout.slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    std::string name = slots[i].parameter.name;
    std::vector<int64_t> shape = slots[i].parameter.shape;
    const int64_t offset = slots[i].offset;
    if (merged && name.ends_with("_Q") && i + 2 < slots.size() &&
        slots[i + 2].parameter.name.ends_with("_V")) {
      shape[0] += slots[i + 1].parameter.shape[0] + slots[i + 2].parameter.shape[0];
      name += "KV";
      i += 2;
    }
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    if (flat.dim() == 2) shape.insert(shape.begin(), flat.size(0));
    Tensor leaf = flat.narrow(-1, offset, count)
                      .unflatten(-1, {shape.data() + flat.dim() - 1, shape.size() - flat.dim() + 1})
                      .detach();
    leaf.requires_grad_(gradients);
    index_[name] = leaves_.size();
    leaves_.push_back(std::move(leaf));
    offsets_.push_back(offset);
  }
}

const Tensor& ParameterViews::get(const std::string& name) const { return leaves_[index_.at(name)]; }

Tensor ParameterViews::get_or_none(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? Tensor() : leaves_[found->second];
}

Weights ParameterViews::part(const std::string& part, int64_t trial) const {
  Weights out;
  const std::string prefix = part + ".";
  for (auto it = index_.lower_bound(prefix); it != index_.end() && it->first.rfind(prefix, 0) == 0; ++it) {
    const Tensor& leaf = leaves_[it->second];
    out.set(it->first.substr(prefix.size()), trial < 0 ? leaf : leaf[trial]);
  }
  return out;
}

}  // namespace rankscope
