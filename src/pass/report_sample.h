// What a report shows of one sample: its attention, pooled to a size a page can hold, how much attention each
// token gets, and the spectra that the lenses hand over. The exact matrices go to a file as the pass goes by,
// one layer at a time: none of them stays in memory.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/array.h"
#include "checkpoint/safetensors.h"
#include "lenses/lens.h"
#include "lenses/support/mask.h"
#include "pass/crossing.h"

namespace rankscope {

class ReportSample {
 public:
  /// `length` is that of the sample, `keys` that of the stream it looks at, where there is one. `file` takes
  /// the exact matrices of the layers chosen, where they are no more than `kMostExact` bytes; otherwise a
  /// note says so.
  ReportSample(const ModelSpec& spec, int64_t length, int64_t keys, const std::vector<bool>& layers,
               const std::optional<std::filesystem::path>& file, std::vector<std::string>& notes);

  static constexpr std::string_view kSite = "attn.hook_pattern";  // what it reads
  /// Takes what the view of that site holds of the sample, if anything; from a device by the crossing.
  void pattern(const std::string& site, const TileView& view, Crossing& crossing);

  /// Forgets everything it has taken.
  void restart();

  /// Puts the file of exact matrices in its place and gives the arrays away, `prefix` before their names.
  std::vector<NamedArray> finish(const std::string& prefix = {});

  std::vector<NamedArray>& arrays() { return arrays_; }

  /// A map is at most this many cells wide.
  static constexpr int64_t kWidestMap = 96;
  static constexpr int64_t kMostExact = int64_t{256} << 20;

 private:
  void pattern_on_host(const std::string& site, const at::Tensor& p, int64_t first_row, const Mask& mask);
  void pattern_on_device(const std::string& site, const at::Tensor& p, int64_t first_row, const Mask& mask,
                         Crossing& crossing);

  int64_t heads_;  // of all maps
  std::vector<NamedArray> arrays_;
  std::filesystem::path file_;
  std::vector<TensorToWrite> promised_;  // empty: no file of exact matrices
  std::unique_ptr<SafetensorsWriter> exact_;
};

/// Cells along a side of a map of a `length` x `length` matrix: all heads together must fit a page.
int64_t map_side(int64_t length, int64_t heads);

}  // namespace rankscope
