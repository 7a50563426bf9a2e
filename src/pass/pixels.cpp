#include "base/error.h"
#include "checkpoint/load.h"
#include "pass/input.h"

namespace rankscope {

std::vector<Sample> read_pixels(const std::filesystem::path& path, int64_t most) {
  const SafetensorsFile file(path);
  const at::Tensor pixels = read_tensor(file, "pixel_values").to(at::kFloat).contiguous();
  if (pixels.dim() != 4)
    throw Error(fmt::format("pixel_values should be [images, channels, height, width], but has {} dimensions",
                            pixels.dim()))
        .in(path.string());
  std::vector<Sample> samples;
  for (int64_t i = 0; i < std::min(most, pixels.size(0)); ++i) {
    const at::Tensor one = pixels[i];
    samples.emplace_back();
    samples.back().pixels.assign(one.data_ptr<float>(), one.data_ptr<float>() + one.numel());
  }
  return samples;
}

}  // namespace rankscope
