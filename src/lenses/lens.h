// A lens is one file of lenses/: what it reads of the forward pass, which metrics it reports, what they mean,
// and how they are computed. The pass hands it views, never copies; what it keeps is its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "base/tensor_fwd.h"
#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

/// What a lens is shown. One Measurement is made per (state of the network, layer, kind of view).
enum class Reads : unsigned {
  residual =
      1,  // tokens at a residual site: embeddings, block outputs, and the normalised block input (pre-norm)
  pattern = 2,  // attention matrices, in tiles
  heads = 4,    // what each head writes
  weights = 8,  // one block's weights
};
constexpr unsigned operator|(Reads a, Reads b) { return static_cast<unsigned>(a) | static_cast<unsigned>(b); }

enum class Mean { arithmetic, geometric };

struct MetricInfo {
  std::string_view name;  // carries the definition; `rankscope lenses` prints these
  std::string_view formula;
  std::string_view meaning;  // one line, what a high or low value says
  Mean mean = Mean::arithmetic;
  double low = 0.0;  // range the contract test holds it to
  double high = 1e300;
  int version = 1;  // raised when a bug fix changes its numbers; a new meaning gets a new name
};

/// How the tokens of a batch are packed: sample s of the batch owns rows offsets[s] .. offsets[s + 1].
/// There is no padding anywhere in the pass.
struct Packing {
  std::span<const int64_t> offsets;  // [S + 1]
  std::span<const int64_t> samples;  // [S] global sample numbers
  std::span<const uint8_t>
      content;  // [N] 1 where the token is content: no special token, not position 0 if causal
  int64_t count() const { return static_cast<int64_t>(samples.size()); }
  int64_t length(int64_t s) const {
    return offsets[static_cast<size_t>(s) + 1] - offsets[static_cast<size_t>(s)];
  }
};

struct ResidualView {
  const at::Tensor& x;  // [N, d], float32 or float64, any device
  const Packing& packing;
};

/// Rows [first_row, first_row + R) of the attention matrices of samples first_sample .. + S, all of length T.
/// Either R == T (whole matrices) or S == 1 and the tiles of a sample come in order.
struct PatternView {
  const at::Tensor& pattern;  // [S, H, R, T]
  int64_t first_sample;       // in the packing
  int64_t first_row;
  bool causal;
  int64_t window;  // 0: none
  const Packing& packing;
};

struct HeadsView {
  const at::Tensor& z;    // [N, H, d_v]: attention times values
  const at::Tensor& W_O;  // [d, H * d_v]
  const at::Tensor& x;    // [N, d]: the residual stream before the block
  const Packing& packing;
};

struct WeightsView {
  const BlockSpec& block;
  const Weights& weights;
};

/// Takes a lens's numbers. Bound to one site, layer, depth and set of variants.
class Recorder {
 public:
  virtual ~Recorder() = default;
  /// One sample's value; the table aggregates by the metric's mean. NaN means "not defined for this sample".
  virtual void sample(std::string_view metric, int64_t sample, double value, int head = -1,
                      std::string_view tokens = "all") = 0;
  /// A value that is not a mean over samples.
  virtual void value(std::string_view metric, double value, double stderr_, int64_t n, int head = -1,
                     std::string_view tokens = "all") = 0;
  /// A head's whole spectrum, of its weights or of the sample that reports show (kShownSample): kept beside
  /// the table where somebody asked for it. Heads come in order.
  virtual void spectrum(std::string_view /*name*/, int /*head*/, std::span<const double> /*sigma*/) {}
};

constexpr int64_t kShownSample = 0;  // the one whose attention a report shows

struct LensContext {
  const ModelSpec& spec;
  int64_t layer;    // of the block, -1 for the embeddings
  uint64_t seed;    // for sampled rows
  int64_t samples;  // in all
};

class Measurement {
 public:
  virtual ~Measurement() = default;
  virtual void residual(const ResidualView&, Recorder&) {}
  virtual void pattern(const PatternView&, Recorder&) {}
  virtual void heads(const HeadsView&, Recorder&) {}
  virtual void weights(const WeightsView&, Recorder&) {}
  virtual void finish(Recorder&) {}  // after the last batch
};

struct Lens {
  std::string_view name;
  std::string_view summary;
  std::string_view cost;  // "0.1 forward passes at T = 128", measured
  unsigned reads;         // Reads, or-ed
  std::vector<MetricInfo> metrics;
  std::unique_ptr<Measurement> (*start)(const LensContext&);
  bool on_request = false;  // left out unless --lens names it
};

/// Every lens, alphabetically (generated from the file names).
const std::vector<const Lens*>& lenses();

}  // namespace rankscope
