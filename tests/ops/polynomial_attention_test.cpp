#include "ops/polynomial_attention.h"

#include "base/error.h"
#include "ops/ops_support.h"

namespace rankscope {
namespace {

// Scores stay within .6 of zero, so that weights of every degree are positive; values five wide, which with
// their one are no multiple of four.
std::vector<at::Tensor> operands(int64_t tokens) {
  at::manual_seed(1);
  const auto unit = [&] {
    const at::Tensor x = at::randn({3, tokens, 6}, at::kDouble);
    return 0.77 * x / at::sqrt((x * x).sum(2, true));
  };
  return {unit(), unit(), at::randn({3, tokens, 5}, at::kDouble)};
}

TEST(PolynomialAttention, ItsWeightsAreThePolynomialOverTheirSum) {
  for (const int64_t n : {1, 2, 64, 65, 150}) {
    const auto x = operands(n);
    const at::Tensor s = at::bmm(x[0], x[1].transpose(1, 2));
    const at::Tensor f[] = {1 + s, 1 + s + s * s / 2, 1 + s + s * s / 2 + s * s * s / 6};
    for (int64_t degree = 1; degree <= 3; ++degree) {
      const at::Tensor weights = f[degree - 1].tril();
      const at::Tensor expected = at::bmm(weights / weights.sum(2, true), x[2]);
      const double limit = 1e-12 * largest(expected);
      EXPECT_LE(distance(polynomial_attention(x[0], x[1], x[2], degree), expected), limit) << n;
      EXPECT_LE(distance(polynomial_attention_reference(x[0], x[1], x[2], degree), expected), limit) << n;
    }
  }
}

TEST(PolynomialAttention, AStateThatNoMemoryHoldsIsRefused) {
  const at::Tensor wide = at::zeros({1, 1, 1}).expand({1, 80, 4000});
  EXPECT_THROW(polynomial_attention(wide, wide, wide, 3), Error);
}

TEST(PolynomialAttention, EqualValuesComeOutAsTheyWentIn) {
  const auto x = operands(130);
  const at::Tensor same = at::ones_like(x[2]) * 3;
  EXPECT_LE(distance(polynomial_attention(x[0], x[1], same, 2), same), 1e-12);
}

TEST(PolynomialAttention, ItsGradientsAreThoseOfThePlainComposition) {
  for (const int64_t n : {3, 64, 150})
    for (int64_t degree = 1; degree <= 3; ++degree) {
      std::vector<at::Tensor> three;
      for (const at::Tensor& x : operands(n)) three.push_back(x.to(at::kFloat));
      const auto by = [&](auto function) {
        return [=](const std::vector<at::Tensor>& x) { return function(x[0], x[1], x[2], degree); };
      };
      for (const at::Device device : devices())
        expect_as_exact(by(polynomial_attention), by(polynomial_attention_reference), three, device);
      expect_derivative(by(polynomial_attention), three);
    }
}

}  // namespace
}  // namespace rankscope
