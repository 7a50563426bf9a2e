#include "operator/part.h"

#include "operator/gain.h"
#include "tensors/norm.h"
#include "tensors/operations.h"

namespace rankscope {
namespace {

class Norm : public LinearPart {
 public:
  Norm(const at::Tensor& x, const NormSpec& norm, const Weights& weights, std::string_view name)
      : centred_(norm.kind == NormKind::layer) {
    const std::string stem = name.empty() ? "" : std::string(name) + ".";
    scale_ = norm_scale(x, norm);
    gain_ = gain_of_norm(norm, weights, stem);
    bias_ = bias_of_norm(norm, weights, stem);
  }

  at::Tensor apply(const at::Tensor& z) const override {
    at::Tensor out = centred_ ? z - z.mean(-1, true) : z.clone();
    out = out.mul_(scale_);
    return gain_.defined() ? out.mul_(gain_) : out;
  }
  at::Tensor adjoint(const at::Tensor& y) const override {
    const at::Tensor out = (gain_.defined() ? y * gain_ : y) * scale_;
    return centred_ ? out - out.mean(-1, true) : out;
  }
  at::Tensor bias() const override { return bias_; }

 private:
  bool centred_;
  at::Tensor scale_, gain_, bias_;  // [N, 1], [d], [d]; the last two undefined where there is none
};

template <class Factor>  // a number, or one per channel
class Scale : public LinearPart {
 public:
  explicit Scale(const Factor& factor) : factor_(factor) {}
  at::Tensor apply(const at::Tensor& z) const override { return z * factor_; }
  at::Tensor adjoint(const at::Tensor& y) const override { return y * factor_; }
  at::Tensor bias() const override { return {}; }

 private:
  Factor factor_;
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

std::shared_ptr<const LinearPart> freeze_scale(double factor) {
  return std::make_shared<Scale<double>>(factor);
}

std::shared_ptr<const LinearPart> freeze_scale(const at::Tensor& factors) {
  return std::make_shared<Scale<at::Tensor>>(factors);
}

std::shared_ptr<const LinearPart> freeze_dense(const at::Tensor& x, const at::Tensor& W, const at::Tensor& b,
                                               Activation activation, at::Tensor& written) {
  const at::Tensor h = at::linear(x, W, b);
  written = apply_activation(h.clone(), activation);
  return std::make_shared<Dense>(W, b, gain_of(h, written, activation));
}

}  // namespace rankscope
