// What every operator asks of tensors that come from outside by name (docs/OPERATORS.md): kernels read memory
// and trust their callers. Each refusal is a sentence that names the argument.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "ops/small_attention.h"

namespace rankscope {

// c10::optional in LibTorch 1.13, std::optional in later ones.
using MaybeTensor = decltype(std::declval<c10::IValue&>().toOptional<at::Tensor>());
at::Tensor or_none(const MaybeTensor& x);

void require(bool holds, const std::string& what);
/// Dense, on the CPU or on CUDA.
void require_memory(const at::Tensor& x, const char* name);
/// ... float32, or float64 on the CPU.
void require_floats(const at::Tensor& x, const char* name);
/// ... [rows, width] or [trials, rows, width].
void require_rows(const at::Tensor& x, const char* name);
/// ... whose rows are sequences of 1 to 256 tokens.
void require_sequences(const at::Tensor& x, int64_t tokens, const char* name);
void require_alike(const at::Tensor& x, const at::Tensor& first, const char* name);
/// The trials of x in front, where it has them, and these sizes behind.
void require_parameter(const at::Tensor& p, const at::Tensor& x, std::vector<int64_t> sizes,
                       const char* name);

/// q, k [sequences, tokens, width] and v [sequences, tokens, any], with at least one of each.
void require_running(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);
/// One number a token of q.
void require_each_token(const at::Tensor& x, const at::Tensor& q, const char* name);

int64_t trials_of(const at::Tensor& x);
/// One number of heads and one scale for all trials, or one a trial.
HeadShape head_shape(const at::Tensor& first, at::IntArrayRef heads, at::ArrayRef<double> scale,
                     int64_t width_qk, int64_t width_v, bool hard, bool shared_values);
/// The width of Q and of K where Q, K and V together have `all` of something.
int64_t width_beside(int64_t width_v, int64_t all, const char* what);

}  // namespace rankscope
