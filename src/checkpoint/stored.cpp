#include "checkpoint/stored.h"

#include <ATen/ATen.h>

#include <cstring>

#include "base/error.h"

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

}  // namespace

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

at::Tensor as_stored(const at::Tensor& bytes, const TensorEntry& entry) {
  return bytes.view(scalar_type(entry.type)).view(entry.shape);
}

at::Tensor oriented(const at::Tensor& stored, const Checkpoint::Place& place, const Parameter& p) {
  const bool whole = stored.numel() == element_count(p);
  if (whole && !place.source.transpose) return stored.reshape(p.shape);  // leading ones, heads apart, plain
  at::Tensor t = p.shape.size() == 1 ? stored.flatten() : stored.flatten(1);
  if (place.source.transpose) t = t.t();
  return t.narrow(0, place.source.first_row, p.shape[0]);
}

at::Tensor table_of(const at::Tensor& stored, const Checkpoint::Place& place) {
  const at::Tensor t = stored.flatten(1);
  return place.source.transpose ? t.t() : t;
}

void refuse_weights(const Checkpoint::Place& place) {
  throw Error("the weights hold NaN or Inf")
      .in(fmt::format("{}, tensor \"{}\"", place.file->path().string(), printable(place.tensor)));
}

}  // namespace rankscope
