#include "base/error.h"
#include "checkpoint/load.h"
#include "pass/input.h"

namespace rankscope {
namespace {

// A tensor whose first dimension counts samples.
std::vector<Sample> read_samples(const std::filesystem::path& path, int64_t most, const char* name,
                                 int64_t dimensions, const char* meaning) {
  const SafetensorsFile file(path);
  const at::Tensor all = read_tensor(file, name).to(at::kFloat).contiguous();
  if (all.dim() != dimensions)
    throw Error(fmt::format("{} should be {}, but has {} dimensions", name, meaning, all.dim()))
        .in(path.string());
  std::vector<Sample> samples;
  for (int64_t i = 0; i < std::min(most, all.size(0)); ++i) {
    const at::Tensor one = all[i];
    samples.emplace_back();
    samples.back().shape = one.sizes().vec();
    samples.back().pixels.assign(one.data_ptr<float>(), one.data_ptr<float>() + one.numel());
  }
  if (samples.empty()) throw Error(fmt::format("{} holds no sample", name)).in(path.string());
  return samples;
}

}  // namespace

std::vector<Sample> read_pixels(const std::filesystem::path& path, int64_t most) {
  return read_samples(path, most, "pixel_values", 4, "[images, channels, height, width]");
}

std::vector<Sample> read_features(const std::filesystem::path& path, int64_t most) {
  return read_samples(path, most, "input_features", 3, "[sounds, mel bins, frames]");
}

}  // namespace rankscope
