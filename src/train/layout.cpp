#include "train/layout.h"

namespace rankscope {

Layout::Layout(const ModelSpec& spec, int64_t alignment) {
  const auto align = [&] { size_ = (size_ + alignment - 1) / alignment * alignment; };
  for (Parameter& p : parameters(spec)) {
    if (!p.name.ends_with("_K") && !p.name.ends_with("_V")) align();
    const int64_t count = element_count(p);
    slots_.push_back({std::move(p), size_});
    size_ += count;
  }
  align();
}

int64_t Layout::offset_of(const std::string& name) const {
  for (const Slot& slot : slots_)
    if (slot.parameter.name == name) return slot.offset;
  return -1;
}

std::vector<float> initial_parameters(const ModelSpec& spec, uint64_t seed) {
  const Layout layout(spec);
  std::vector<float> out(static_cast<size_t>(layout.size()));
  for (const Slot& slot : layout.slots())
    draw(slot.parameter, spec, seed, 0, element_count(slot.parameter), out.data() + slot.offset);
  return out;
}

}  // namespace rankscope
