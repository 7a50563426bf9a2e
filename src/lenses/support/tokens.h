// The tokens of a residual site, one sample at a time, under both token rules.
//
// all: every token. content: without special tokens and position 0 of causal models (Packing::content), and
// without massive tokens, whose norm exceeds 20 times the median norm of their sample at this site.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lenses/lens.h"

namespace rankscope {

/// Where the residual stream is read: the embeddings, what attention reads where a norm stands before it, the
/// output of every block, and that of the final norm.
std::vector<SiteUse> residual_sites();

/// Some tokens of one sample: x [count, width], row-major, the measure's own to overwrite.
struct Tokens {
  double* x;
  int64_t count, width;
  double epsilon;  // of the dtype they came in
};

/// Fills one number per metric; NaN where it is not defined.
using TokenMeasure = std::function<void(const Tokens&, double* out)>;

/// Measures every sample, in parallel, under both rules: what Measurement::whole returns. Where content is
/// everything the numbers are those of all; with fewer than two content tokens there are none.
at::Tensor measure_tokens(const WholeView& view, size_t metrics, const TokenMeasure& measure);

/// The same for numbers that are found faster together. `look` sees the tokens of every sample under every
/// rule, in parallel, and leaves what it needs under the slot, of which there are token_slots(view); `finish`
/// is called once; `read` then fills the numbers of a slot.
struct TokenSteps {
  std::function<void(const Tokens&, size_t slot)> look;
  std::function<void()> finish;
  std::function<void(size_t slot, double* out)> read;
};
size_t token_slots(const WholeView& view);
at::Tensor measure_tokens(const WholeView& view, size_t metrics, const TokenSteps& steps);

/// The same for content alone, a slot a sample. `massive` is the number of tokens that the norm rule left
/// out; `look` may fill numbers already.
struct ContentSteps {
  std::function<void(const Tokens&, int64_t massive, size_t slot, double* out)> look;
  std::function<void()> finish;
  std::function<void(size_t slot, double* out)> read;
};
at::Tensor measure_content(const WholeView& view, size_t metrics, const ContentSteps& steps);

}  // namespace rankscope
