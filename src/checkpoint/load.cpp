#include "checkpoint/load.h"

#include "base/error.h"
#include "checkpoint/staged.h"
#include "checkpoint/stored.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

class CheckpointSource : public WeightSource {
 public:
  CheckpointSource(const Checkpoint& checkpoint, const std::string& dtype, const std::string& device)
      : checkpoint_(checkpoint),
        options_(at::TensorOptions().dtype(dtype_of(dtype)).device(device_of(device))) {}
  ~CheckpointSource() override { release(); }

  const ModelSpec& spec() const override { return checkpoint_.spec(); }

  Weights load(const std::string& part) override {
    release();
    Weights weights;
    std::map<std::string, Parameter> later;  // experts: read when they are taken, and dropped
    for (const Parameter& p : parameters_of(spec(), part)) {
      if (is_vocabulary_table(p.name)) continue;
      const std::string name = p.name.substr(part.size() + 1);
      if (p.on_demand)
        later.emplace(name, p);
      else
        weights.set(name, read(p));
    }
    if (!later.empty())
      weights.later(
          [this, later = std::move(later)](const std::string& name) { return read(later.at(name)); });
    return weights;
  }

  at::Tensor rows(const std::string& parameter, const at::Tensor& indices) override {
    return picked(parameter, [&](const at::Tensor& table) { return table.index_select(0, indices.cpu()); });
  }

  at::Tensor row_range(const std::string& parameter, int64_t first, int64_t count) override {
    return picked(parameter, [&](const at::Tensor& table) { return table.narrow(0, first, count); });
  }

 private:
  template <class Pick>
  at::Tensor picked(const std::string& parameter, Pick pick) {
    const Checkpoint::Place& place = checkpoint_.place(parameter);
    const at::Tensor out =
        pick(table_of(view_of(*place.file, *place.entry), place)).to(options_, false, /*copy=*/true);
    place.file->release(*place.entry);
    if (!all_finite(out)) refuse_weights(place);
    return out;
  }

  at::Tensor read(const Parameter& p) {
    const Checkpoint::Place& place = checkpoint_.place(p.name);
    const at::Tensor stored = oriented(stored_tensor(place), place, p);
    const at::Tensor tensor = finished(stored.to(options_), place, p);
    if (!all_finite(tensor)) refuse_weights(place);
    if (tensor.is_alias_of(stored))
      in_use_.push_back(&place);  // pages go back with the next part
    else
      release_pages(place);
    return tensor;
  }

  void release() {
    for (const Checkpoint::Place* place : in_use_) release_pages(*place);
    in_use_.clear();
  }

  const Checkpoint& checkpoint_;
  at::TensorOptions options_;
  std::vector<const Checkpoint::Place*> in_use_;
};

}  // namespace

std::unique_ptr<WeightSource> checkpoint_source(const Checkpoint& checkpoint, const std::string& dtype,
                                                const std::string& device) {
  auto source = std::make_unique<CheckpointSource>(checkpoint, dtype, device);
  if (!device_of(device).is_cuda()) return source;
  return staged_source(checkpoint, dtype, device, std::move(source));
}

at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name) {
  const auto it = file.tensors().find(name);
  if (it == file.tensors().end())
    throw Error(fmt::format("the file holds no tensor \"{}\"", name)).in(file.path().string());
  return view_of(file, it->second).clone();
}

}  // namespace rankscope
