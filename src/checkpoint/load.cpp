#include "checkpoint/load.h"

#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

at::ScalarType scalar_type(StoredType type) {
  switch (type) {
    case StoredType::f64:
      return at::kDouble;
    case StoredType::f32:
      return at::kFloat;
    case StoredType::f16:
      return at::kHalf;
    case StoredType::bf16:
      return at::kBFloat16;
    case StoredType::i64:
      return at::kLong;
    case StoredType::i32:
      return at::kInt;
    case StoredType::i16:
      return at::kShort;
    case StoredType::i8:
      return at::kChar;
    case StoredType::u8:
      return at::kByte;
    case StoredType::boolean:
      return at::kBool;
  }
  return at::kFloat;
}

// A view of the file's bytes; copied first where they are not aligned for their type.
at::Tensor view_of(const SafetensorsFile& file, const TensorEntry& entry) {
  const auto bytes = file.bytes(entry);
  auto* data = const_cast<std::byte*>(bytes.data());  // mapped read-only: a write would fault
  const auto options = at::TensorOptions().dtype(scalar_type(entry.type));
  if (reinterpret_cast<uintptr_t>(data) % size_of(entry.type) != 0) {
    at::Tensor copy = at::empty(entry.shape, options);
    std::memcpy(copy.data_ptr(), data, bytes.size());
    return copy;
  }
  return at::from_blob(data, entry.shape, options);
}

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
    for (const Parameter& p : parameters_of(spec(), part)) {
      if (is_vocabulary_table(p.name)) continue;
      const Checkpoint::Place& place = checkpoint_.place(p.name);
      const at::Tensor stored = oriented(place, p);
      const at::Tensor tensor = stored.to(options_);
      check_finite(tensor, place);
      weights.set(p.name.substr(part.size() + 1), p.shape.size() == 1 ? tensor.reshape(p.shape) : tensor);
      if (tensor.is_alias_of(stored))
        in_use_.push_back(&place);  // pages go back with the next part
      else
        place.file->release(*place.entry);
    }
    return weights;
  }

  at::Tensor rows(const std::string& parameter, const at::Tensor& indices) override {
    const Checkpoint::Place& place = checkpoint_.place(parameter);
    const at::Tensor picked = table(place).index_select(0, indices).to(options_);
    place.file->release(*place.entry);
    check_finite(picked, place);
    return picked;
  }

  at::Tensor row_range(const std::string& parameter, int64_t first, int64_t count) override {
    const Checkpoint::Place& place = checkpoint_.place(parameter);
    const at::Tensor picked = table(place).narrow(0, first, count).to(options_, false, /*copy=*/true);
    place.file->release(*place.entry);
    check_finite(picked, place);
    return picked;
  }

 private:
  static at::Tensor table(const Checkpoint::Place& place) {
    const at::Tensor t = view_of(*place.file, *place.entry).flatten(1);
    return place.source.transpose ? t.t() : t;
  }

  // The stored tensor turned into [out, in] and cut to the parameter's own rows; still in the file's type.
  static at::Tensor oriented(const Checkpoint::Place& place, const Parameter& p) {
    at::Tensor t = view_of(*place.file, *place.entry);
    const bool whole = t.numel() == element_count(p);
    if (whole && !place.source.transpose) return t.reshape(p.shape);  // leading ones, heads apart, plain
    t = p.shape.size() == 1 ? t.flatten() : t.flatten(1);
    if (place.source.transpose) t = t.t();
    return t.narrow(0, place.source.first_row, p.shape[0]);
  }

  static void check_finite(const at::Tensor& t, const Checkpoint::Place& place) {
    if (all_finite(t)) return;
    throw Error("the weights hold NaN or Inf")
        .in(fmt::format("{}, tensor \"{}\"", place.file->path().string(), printable(place.tensor)));
  }

  void release() {
    for (const Checkpoint::Place* place : in_use_) place->file->release(*place->entry);
    in_use_.clear();
  }

  const Checkpoint& checkpoint_;
  at::TensorOptions options_;
  std::vector<const Checkpoint::Place*> in_use_;
};

}  // namespace

std::unique_ptr<WeightSource> checkpoint_source(const Checkpoint& checkpoint, const std::string& dtype,
                                                const std::string& device) {
  return std::make_unique<CheckpointSource>(checkpoint, dtype, device);
}

at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name) {
  const auto it = file.tensors().find(name);
  if (it == file.tensors().end())
    throw Error(fmt::format("the file holds no tensor \"{}\"", name)).in(file.path().string());
  return view_of(file, it->second).clone();
}

}  // namespace rankscope
