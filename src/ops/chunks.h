// Sequences cut into chunks, for the plain compositions of running attention (linear_attention,
// delta_attention).
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace rankscope {

/// x [B, T, ..] as [B, chunks, tokens of a chunk, ..]; behind the end there is `fill`.
at::Tensor in_chunks(const at::Tensor& x, double fill = 0);
/// Back to [B, T, ..].
at::Tensor out_of_chunks(const at::Tensor& x, int64_t tokens);

/// x [B, chunks, ..] chunk by chunk, all undefined where it is. The gradient is put together once, where
/// those of many selects would be added up, each as large as the whole.
std::vector<at::Tensor> of_each_chunk(const at::Tensor& x, int64_t chunks);

/// What is kept between the tokens of each chunk; all undefined where everything is.
struct KeptInChunks {
  at::Tensor G;       // [B, chunks, n, n]: keep_{j+1} ... keep_i, zero above the diagonal
  at::Tensor before;  // [B, chunks, n, 1]: keep_0 ... keep_i
  at::Tensor to_end;  // [B, chunks, n, 1]: keep_{j+1} ... keep_last
  at::Tensor whole;   // [B, chunks, 1, 1]

  explicit KeptInChunks(const at::Tensor& keep);  // [B, T], or undefined
  static at::Tensor times(const at::Tensor& x, const at::Tensor& kept) {
    return kept.defined() ? x * kept : x;
  }
};

}  // namespace rankscope
