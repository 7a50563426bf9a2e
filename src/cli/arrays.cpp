#include "cli/arrays.h"

#include <cstring>

#include "checkpoint/safetensors.h"

namespace rankscope {

void write_arrays(const std::filesystem::path& file, std::span<const NamedArray> arrays) {
  std::vector<TensorToWrite> tensors;
  for (const NamedArray& a : arrays)
    tensors.push_back({a.name, StoredType::f32, a.shape, std::as_bytes(std::span(a.values))});
  write_safetensors(file, tensors);
}

std::vector<NamedArray> read_arrays(const std::filesystem::path& file) {
  std::vector<NamedArray> out;
  if (!std::filesystem::exists(file)) return out;
  const SafetensorsFile stored(file);
  for (const auto& [name, entry] : stored.tensors()) {
    if (entry.type != StoredType::f32) continue;
    const std::span<const std::byte> bytes = stored.bytes(entry);
    NamedArray a{name, entry.shape, std::vector<float>(bytes.size() / sizeof(float))};
    std::memcpy(a.values.data(), bytes.data(), bytes.size());
    out.push_back(std::move(a));
  }
  return out;
}

}  // namespace rankscope
