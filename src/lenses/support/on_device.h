// Lenses where the tensors are: on a GPU numbers are computed there, in double precision, without waiting for
// it; nothing but finished numbers is copied, by the recorder. On the CPU the loops of kernels/cpu are
// faster.
#pragma once

#include <functional>

#include "lenses/lens.h"
#include "lenses/support/mask.h"

namespace c10 {
struct Device;
}

namespace rankscope {

/// Whether a lens computes with tensors on x's device. Spectra of double precision data need the exact route,
/// which is the host's: `exact` says that the lens is one of those.
bool stays_on_device(const at::Tensor& x, bool exact = false);

/// For tests: lenses take the device's way on the CPU too, while this lives.
class AsOnDevice {
 public:
  AsOnDevice();
  ~AsOnDevice();
  AsOnDevice(const AsOnDevice&) = delete;
  AsOnDevice& operator=(const AsOnDevice&) = delete;
};

/// Numbers of the host on a device, without waiting for it.
at::Tensor sent(const at::Tensor& host, c10::Device device);

/// The tokens of every sample that count under one rule. Shorter samples end in zeros.
struct PaddedTokens {  // whoever handles it includes ATen
  at::Tensor x;        // [S, T, d] double: 0 where a token does not count
  at::Tensor kept;     // [S, T] double: 1 where it does
  at::Tensor count;    // [S] double
  double epsilon = 0;  // of the dtype they came in

  /// Without the mean token, which is `mean` [S, d]; tokens that do not count stay zero.
  at::Tensor centered(const at::Tensor& mean) const;
  at::Tensor mean() const;
};

/// [S, metrics]: NaN where a metric is not defined.
using PaddedMeasure = std::function<at::Tensor(const PaddedTokens&)>;

/// Both rules of lenses/support/tokens.h: what Measurement::whole returns.
at::Tensor measure_padded(const WholeView& view, const PaddedMeasure& measure);

/// Content tokens alone; `massive` [S] is the number of tokens that the norm rule left out.
using PaddedContentMeasure = std::function<at::Tensor(const PaddedTokens&, const at::Tensor& massive)>;
at::Tensor measure_padded_content(const WholeView& view, const PaddedContentMeasure& measure);

/// The numbers of kernels/cuda/residual.h under both rules, [2, S, 1, 5]; undefined where it does not take x.
at::Tensor fused_residuals(const WholeView& view);

/// x [N, ..] as [S, T, ..], in its own dtype, zeros behind shorter samples; and the lengths [S], double.
struct PaddedRows {
  at::Tensor x, lengths, present;  // present [S, T] double
};
PaddedRows padded_rows(const at::Tensor& x, const Packing& packing);

/// 1 where a value of a row [S, n] exceeds kMassive times the median of those above zero (support/median.h).
at::Tensor above_median_of(const at::Tensor& values);

/// The middle of each row of the first `count` [S] values in ascending order, sorted [S, n].
at::Tensor middle_of_sorted(const at::Tensor& sorted, const at::Tensor& count);

/// What one pass over a tile [S, H, R, keys] gives.
struct PatternSums {
  at::Tensor entropy;   // [S, H]: sum over rows of H(row) / log(keys seen), rows that have a choice only
  at::Tensor received;  // [S, H, keys]: column sums
};
PatternSums pattern_sums(const at::Tensor& tile, int64_t first_row, const Mask& mask);

/// Numbers of heads [S, H, metrics] in the shape that Measurement returns, nothing said of all together.
at::Tensor of_heads(const at::Tensor& numbers);
/// Values [H, metrics] with their errors and numbers of samples, in the shape of Measurement::finish; the
/// last row, of all heads together, is `whole` [metrics, 3] where given and otherwise says nothing.
at::Tensor head_totals(const at::Tensor& values, const at::Tensor& errors, const at::Tensor& samples,
                       const at::Tensor& whole);

}  // namespace rankscope
