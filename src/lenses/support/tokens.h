// The tokens of a residual site, one sample at a time, under both token rules.
//
// all: every token. content: without special tokens and position 0 of causal models (Packing::content), and
// without massive tokens, whose norm exceeds 20 times the median norm of their sample at this site.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "lenses/lens.h"

namespace rankscope {

/// Some tokens of one sample: x [count, width], row-major, the measure's own to overwrite.
struct Tokens {
  double* x;
  int64_t count, width;
  double epsilon;  // of the dtype they came in
};

/// Fills one number per metric; NaN where it is not defined.
using TokenMeasure = std::function<void(const Tokens&, double* out)>;

/// Measures every sample, in parallel, under both rules, and records in order what is defined. Where content
/// is everything the numbers are those of all; with fewer than two content tokens there are none.
void measure_tokens(const ResidualView& view, Recorder& recorder, std::span<const std::string_view> metrics,
                    const TokenMeasure& measure);

/// The same for content alone; `massive` is the number of tokens the norm rule left out.
using ContentMeasure = std::function<void(const Tokens&, int64_t massive, double* out)>;
void measure_content(const ResidualView& view, Recorder& recorder, std::span<const std::string_view> metrics,
                     const ContentMeasure& measure);

}  // namespace rankscope
