#include "ops/delta_attention.h"

#include "ops/ops_support.h"

namespace rankscope {
namespace {

struct Operands {
  at::Tensor q, k, v, write, keep;
};

// Two sequences of odd widths; keys of length one, as the variant has them.
Operands operands(int64_t tokens) {
  at::manual_seed(1);
  const auto draw = [&](int64_t width) { return at::randn({2, tokens, width}, at::kDouble); };
  const auto gate = [&](double shift) { return at::sigmoid(at::randn({2, tokens}, at::kDouble) + shift); };
  const at::Tensor k = draw(5);
  return {draw(5), k / k.norm(2, {2}, true), draw(7), gate(0), gate(2)};
}

at::Tensor recurrent(const Operands& in, bool forgets) {
  at::Tensor state = at::zeros({in.q.size(0), in.k.size(2), in.v.size(2)}, at::kDouble);
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < in.q.size(1); ++t) {
    const at::Tensor k = in.k.select(1, t).unsqueeze(1);  // [B, 1, d]
    if (forgets) state = state * in.keep.select(1, t).view({-1, 1, 1});
    const at::Tensor u =
        (in.v.select(1, t).unsqueeze(1) - at::bmm(k, state)) * in.write.select(1, t).view({-1, 1, 1});
    state = at::baddbmm(state, k.transpose(1, 2), u);
    out.push_back(at::bmm(in.q.select(1, t).unsqueeze(1), state).squeeze(1));
  }
  return at::stack(out, 1);
}

TEST(DeltaAttention, RecurrentAndChunkedFormsAgree) {
  for (const int64_t n : {1, 2, 63, 64, 65, 130, 257, 8192}) {
    const Operands in = operands(n);
    for (const bool forgets : {false, true}) {
      if (n == 8192 && !forgets) continue;  // once is enough
      const at::Tensor keep = forgets ? in.keep : at::Tensor();
      const at::Tensor expected = recurrent(in, forgets);
      const double limit = 1e-10 * largest(expected);
      EXPECT_LE(distance(delta_attention(in.q, in.k, in.v, in.write, keep), expected), limit) << n;
      EXPECT_LE(distance(delta_attention_reference(in.q, in.k, in.v, in.write, keep), expected), limit) << n;
    }
  }
}

TEST(DeltaAttention, ATokenThatKeepsNothingBeginsAfreshAndItsSlopeIsFinite) {
  const Operands in = operands(150);
  at::Tensor keep = in.keep.clone();
  keep.select(1, 100).zero_();
  keep.requires_grad_(true);
  const at::Tensor out = delta_attention(in.q, in.k, in.v, in.write, keep);
  const auto later = [](const at::Tensor& x) { return x.narrow(1, 100, 50); };
  const at::Tensor alone =
      delta_attention(later(in.q), later(in.k), later(in.v), later(in.write), later(in.keep));
  EXPECT_LE(distance(later(out).detach(), alone), 1e-12 * largest(alone));
  EXPECT_TRUE(at::isfinite(torch::autograd::grad({out.sum()}, {keep})[0]).all().item<bool>());
}

TEST(DeltaAttention, ItsGradientsAreThoseOfThePlainComposition) {
  for (const int64_t n : {1, 3, 64, 65, 200})
    for (const bool forgets : {false, true}) {
      const Operands in = operands(n);
      const auto by = [](auto function) {
        return [=](const std::vector<at::Tensor>& x) { return function(x[0], x[1], x[2], x[3], x[4]); };
      };
      std::vector<at::Tensor> all{in.q, in.k, in.v, in.write, forgets ? in.keep : at::Tensor()};
      for (at::Tensor& x : all)
        if (x.defined()) x = x.to(at::kFloat);
      for (const at::Device device : devices())
        expect_as_exact(by(delta_attention), by(delta_attention_reference), all, device);
      expect_derivative(by(delta_attention), all);
    }
}

}  // namespace
}  // namespace rankscope
