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

at::Tensor stored_tensor(const Checkpoint::Place& place) {
  const at::Tensor first = view_of(*place.file, *place.entry);
  if (place.more.empty()) return first;
  std::vector<at::Tensor> all{first};
  for (const Checkpoint::Stored& stored : place.more) all.push_back(view_of(*stored.file, *stored.entry));
  return at::cat(all, 0);
}

void release_pages(const Checkpoint::Place& place) {
  place.file->release(*place.entry);
  for (const Checkpoint::Stored& stored : place.more) stored.file->release(*stored.entry);
}

at::Tensor oriented(const at::Tensor& stored, const Checkpoint::Place& place, const Parameter& p) {
  const Source& source = place.source;
  at::Tensor t = source.matrix >= 0 ? stored.select(0, source.matrix) : stored;
  const bool whole = t.numel() == element_count(p) && source.order.empty();
  if (whole && !source.transpose) return t.reshape(p.shape);  // leading ones, heads apart, plain
  t = p.shape.size() == 1 ? t.flatten() : t.flatten(1);
  if (source.transpose) t = t.t();
  if (source.groups == 1 && source.order.empty()) return t.narrow(0, source.first_row, p.shape[0]);
  t = t.unflatten(0, {source.groups, t.size(0) / source.groups});
  t = source.order.empty() ? t.narrow(1, source.first_row, p.shape[0] / source.groups)
                           : t.index_select(1, at::tensor(source.order, at::kLong).to(t.device()));
  return t.reshape(p.shape);
}

at::Tensor finished(const at::Tensor& oriented, const Checkpoint::Place& place, const Parameter& p) {
  const at::Tensor t = place.source.plus != 0 ? oriented + place.source.plus : oriented;
  return p.shape.size() == 1 ? t.reshape(p.shape) : t;
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
