// A small checkpoint folder for one test: a config, and tensors with the shapes the architecture asks for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/test_support.h"
#include "checkpoint/architecture.h"
#include "checkpoint/safetensors.h"
#include "parts/parameters.h"

namespace rankscope::test {

struct StoredTensor {
  StoredType type = StoredType::f32;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// Every tensor a spec's sources name, filled with numbers that differ everywhere. `prefix` goes before the
/// base's.
inline std::map<std::string, StoredTensor> tensors_for(const Architecture& architecture,
                                                       const ModelSpec& spec, const std::string& prefix) {
  std::map<std::string, StoredTensor> out;
  float next = 1;
  const WeightMap sources = architecture.weights(spec);
  for (const Parameter& p : parameters(spec)) {
    const Source& source = sources.at(p.name);
    std::vector<int64_t> shape = p.shape;
    if (source.stored_rows > 0) shape[0] = source.stored_rows;
    if (source.transpose) std::swap(shape.front(), shape.back());
    if (!source.stored_shape.empty()) shape = source.stored_shape;
    StoredTensor& tensor = out[(source.outside_base ? "" : prefix) + source.tensor];
    if (!tensor.shape.empty()) continue;  // fused or tied: already there
    tensor.shape = shape;
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    for (int64_t i = 0; i < n; ++i) tensor.values.push_back(next++);
  }
  return out;
}

inline void write_tensors(const std::filesystem::path& path,
                          const std::map<std::string, StoredTensor>& tensors) {
  std::vector<TensorToWrite> list;
  for (const auto& [name, tensor] : tensors) {
    auto bytes = std::as_bytes(std::span(tensor.values));
    if (tensor.type != StoredType::f32) bytes = bytes.first(tensor.values.size() * size_of(tensor.type));
    list.push_back({name, tensor.type, tensor.shape, bytes});
  }
  write_safetensors(path, list);
}

}  // namespace rankscope::test
