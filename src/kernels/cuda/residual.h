// How far the tokens of samples are from all being alike, in one launch on CUDA: what lenses/residual.cpp
// measures, of all tokens of every sample and of its content tokens alone.
#pragma once

#include <cstdint>

namespace rankscope::cuda {

/// `samples` of `tokens` each (shorter ones have some that are not present), `width` numbers a token. A token
/// whose norm exceeds `massive` times the median token's is no content.
struct ResidualShape {
  int64_t samples = 0, tokens = 0, width = 0;
  double massive = 0;
};

constexpr int64_t kResidualNumbers = 5, kResidualRules = 2;

/// Whether a sample's mean and its tokens' norms fit into the memory that a block has for itself.
constexpr bool residual_fits(const ResidualShape& shape) {
  return 8 * shape.width + 16 * shape.tokens <= 200'000;
}

/// x [.., width]: token t of sample s is row index[s * tokens + t]. present, content [samples, tokens]: 1
/// where there is such a token, else 0. out [2, samples, 5], of all tokens and of content alone: sqrt(|R|_1
/// |R|_inf), that over the same of X, |R|_F, |1 x^T|_F and |R|_F / |X|_F, where X are the tokens that count,
/// x is their mean and R = X - 1 x^T. NaN where a number is not defined, and for samples with fewer than two
/// tokens or with one that is not finite.
void residuals(const ResidualShape& shape, const float* x, const int64_t* index, const double* present,
               const double* content, double* out, void* stream);

}  // namespace rankscope::cuda
