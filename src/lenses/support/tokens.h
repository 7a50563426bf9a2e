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

/// The same for numbers that are found faster together. `look` sees the tokens of every sample under every
/// rule, in parallel, and leaves what it needs under the slot, of which there are token_slots(view); `settle`
/// is called once; `read` then fills the numbers of a slot.
struct TokenSteps {
  std::function<void(const Tokens&, size_t slot)> look;
  std::function<void()> settle;
  std::function<void(size_t slot, double* out)> read;
};
size_t token_slots(const ResidualView& view);
void measure_tokens(const ResidualView& view, Recorder& recorder, std::span<const std::string_view> metrics,
                    const TokenSteps& steps);

/// The same for content alone, a slot a sample. `massive` is the number of tokens that the norm rule left
/// out; `look` may fill numbers already.
struct ContentSteps {
  std::function<void(const Tokens&, int64_t massive, size_t slot, double* out)> look;
  std::function<void()> settle;
  std::function<void(size_t slot, double* out)> read;
};
void measure_content(const ResidualView& view, Recorder& recorder, std::span<const std::string_view> metrics,
                     const ContentSteps& steps);

}  // namespace rankscope
