#include "operator/part.h"

#include "operator/gain.h"
#include "tensors/norm.h"

namespace rankscope {
namespace {

class Norm : public LinearPart {
 public:
  Norm(const at::Tensor& x, const NormSpec& norm, const Weights& weights, std::string_view name)
      : centred_(norm.kind == NormKind::layer) {
    const std::string stem = name.empty() ? "" : std::string(name) + ".";
    scale_ = norm_scale(x, norm);
    gain_ = weights.get(stem + "w");
    if (centred_) bias_ = weights.get(stem + "b");
  }

  at::Tensor apply(const at::Tensor& z) const override {
    at::Tensor out = centred_ ? z - z.mean(-1, true) : z.clone();
    return out.mul_(scale_).mul_(gain_);
  }
  at::Tensor adjoint(const at::Tensor& y) const override {
    const at::Tensor out = (y * gain_).mul_(scale_);
    return centred_ ? out - out.mean(-1, true) : out;
  }
  at::Tensor bias() const override { return bias_; }

 private:
  bool centred_;
  at::Tensor scale_, gain_, bias_;  // [N, 1], [d], [d]
};

class Scale : public LinearPart {
 public:
  explicit Scale(double factor) : factor_(factor) {}
  at::Tensor apply(const at::Tensor& z) const override { return z * factor_; }
  at::Tensor adjoint(const at::Tensor& y) const override { return y * factor_; }
  at::Tensor bias() const override { return {}; }

 private:
  double factor_;
};

// z -> z W^T * G.
class Dense : public LinearPart {
 public:
  Dense(const at::Tensor& W, const at::Tensor& b, const at::Tensor& gain) : W_(W), gain_(gain) {
    if (b.defined()) bias_ = gain * b;
  }
  at::Tensor apply(const at::Tensor& z) const override { return at::linear(z, W_).mul_(gain_); }
  at::Tensor adjoint(const at::Tensor& y) const override { return at::matmul(y * gain_, W_); }
  at::Tensor bias() const override { return bias_; }

 private:
  at::Tensor W_, gain_, bias_;
};

}  // namespace

std::shared_ptr<const LinearPart> freeze_norm(const at::Tensor& x, const NormSpec& norm,
                                              const Weights& weights, std::string_view name) {
  return std::make_shared<Norm>(x, norm, weights, name);
}

std::shared_ptr<const LinearPart> freeze_scale(double factor) { return std::make_shared<Scale>(factor); }

std::shared_ptr<const LinearPart> freeze_dense(const at::Tensor& x, const at::Tensor& W, const at::Tensor& b,
                                               Activation activation, at::Tensor& written) {
  const at::Tensor h = at::linear(x, W, b);
  written = apply_activation(h.clone(), activation);
  return std::make_shared<Dense>(W, b, gain_of(h, written, activation));
}

}  // namespace rankscope
