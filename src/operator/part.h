// The parts of a forward pass with everything that depends on the input held still: each is then affine.
//
//   attention   z -> sum_h P_h z W_V^T W_O^T + bias          P_h held
//   norm        z -> s_i (z - mean) g + b                    s_i = 1 / sigma_i held; the mean stays linear
//   mlp         z -> ((z W_in^T + b_in) * G) W_out^T + b     G = act(h) / h held; gated: G = act(gate)
//
// Exact at the input they were frozen at; not the Jacobian there. Vectors come as [K, N, d]: K streams go
// through side by side, N the packed tokens of a batch.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/tensor_fwd.h"
#include "model/block.h"
#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

class LinearPart {
 public:
  virtual ~LinearPart() = default;
  virtual at::Tensor apply(const at::Tensor& z) const = 0;    // [K, N, in] -> [K, N, out]
  virtual at::Tensor adjoint(const at::Tensor& y) const = 0;  // [K, N, out] -> [K, N, in]
  virtual at::Tensor bias() const = 0;  // [N, out] or [out], undefined when there is none
};

/// A part's program with its patterns, activations and gates held.
class FrozenProgram : public LinearPart {
 public:
  virtual int64_t heads() const = 0;  // 0: no attention in it
  /// What each head writes, without the bias: [H, K, N, d].
  virtual at::Tensor apply_heads(const at::Tensor& z) const = 0;
  /// The held patterns of the samples one behind another, each [H, T, T].
  virtual std::vector<at::Tensor> patterns() const = 0;
};

/// The program that `step` runs, over what it reads, x [N, d], and what it writes there, bias included. Heads
/// taken out have a pattern of zeros. At h = 0 an activation's gain is act'(0) (relu: 0).
std::shared_ptr<const FrozenProgram> freeze_program(const at::Tensor& x, const Step& step,
                                                    const Program& program, const Weights& weights,
                                                    const Batch& batch, at::Tensor& written);

/// The norm at x [N, d]; `name` as in apply_norm. Only for norms that act.
std::shared_ptr<const LinearPart> freeze_norm(const at::Tensor& x, const NormSpec& norm,
                                              const Weights& weights, std::string_view name);

/// z -> factor z, one number or one per channel.
std::shared_ptr<const LinearPart> freeze_scale(double factor);
std::shared_ptr<const LinearPart> freeze_scale(const at::Tensor& factors);

/// act(x W^T + b) at x [N, d], and its value there: the dense layer of a transformed head.
std::shared_ptr<const LinearPart> freeze_dense(const at::Tensor& x, const at::Tensor& W, const at::Tensor& b,
                                               Activation activation, at::Tensor& written);

}  // namespace rankscope
