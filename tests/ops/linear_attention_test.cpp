#include "ops/linear_attention.h"

#include "base/error.h"
#include "ops/ops_support.h"

namespace rankscope {
namespace {

constexpr int64_t kLengths[] = {1, 2, 63, 64, 65, 130, 257};

struct Operands {
  at::Tensor q, k, v, keep;
};

// Three sequences of odd widths; scores stay below 1 in size, so that every degree counts.
Operands operands(int64_t tokens) {
  at::manual_seed(1);
  const auto draw = [&](int64_t width) { return at::randn({3, tokens, width}, at::kDouble); };
  return {draw(5) * 0.3, draw(5) * 0.3, draw(7), at::sigmoid(at::randn({3, tokens}, at::kDouble) + 2)};
}

// S = keep S + phi(k) v^T, out = phi(q) S.
at::Tensor recurrent(const Operands& in, bool forgets, int64_t degree) {
  const at::Tensor phi_q = monomials(in.q, degree), phi_k = monomials(in.k, degree);
  at::Tensor state = at::zeros({in.q.size(0), phi_k.size(2), in.v.size(2)}, at::kDouble);
  std::vector<at::Tensor> out;
  for (int64_t t = 0; t < in.q.size(1); ++t) {
    if (forgets) state = state * in.keep.select(1, t).view({-1, 1, 1});
    state = at::baddbmm(state, phi_k.select(1, t).unsqueeze(2), in.v.select(1, t).unsqueeze(1));
    out.push_back(at::bmm(phi_q.select(1, t).unsqueeze(1), state).squeeze(1));
  }
  return at::stack(out, 1);
}

// tril(G f(Q K^T)) V.
at::Tensor parallel(const Operands& in, bool forgets, int64_t degree) {
  const at::Tensor s = at::bmm(in.q, in.k.transpose(1, 2));
  at::Tensor f = s;
  if (degree > 0) f = 1 + s;
  if (degree > 1) f = f + s * s / 2;
  if (degree > 2) f = f + s * s * s / 6;
  if (forgets) {
    const at::Tensor sums = at::log(in.keep).cumsum(1);
    f = f * at::exp((sums.unsqueeze(2) - sums.unsqueeze(1)).clamp_max(0));
  }
  return at::bmm(f.tril(), in.v);
}

TEST(LinearAttention, RecurrentChunkedAndParallelFormsAgree) {
  for (const int64_t n : kLengths) {
    const Operands in = operands(n);
    for (const bool forgets : {false, true})
      for (int64_t degree = 0; degree <= kMaxDegree; ++degree) {
        const at::Tensor keep = forgets ? in.keep : at::Tensor();
        const at::Tensor expected = recurrent(in, forgets, degree);
        const double limit = 1e-10 * largest(expected);
        EXPECT_LE(distance(linear_attention(in.q, in.k, in.v, keep, degree), expected), limit) << n;
        EXPECT_LE(distance(linear_attention_reference(in.q, in.k, in.v, keep, degree), expected), limit) << n;
        EXPECT_LE(distance(parallel(in, forgets, degree), expected), limit) << n;
      }
  }
}

TEST(LinearAttention, AStateThatNoMemoryHoldsIsRefused) {
  const auto fault = [](int64_t tokens, int64_t width, int64_t degree) -> std::string {
    const at::Tensor x = at::zeros({1, 1, 1}).expand({1, tokens, width});
    try {
      linear_attention(x, x, x, {}, degree);
    } catch (const Error& e) {
      return e.message();
    }
    return "";
  };
  // C(4003, 3) rows of 4 bytes for each of 4000 values and 3 * 64 tokens, and 32 of the table.
  EXPECT_EQ(
      fault(65, 4000, 3),
      "a width of 4000 makes a state of 1.07e+10 rows by 4000 at degree 3, which works in 1.67e+05 GiB: "
      "more than the 8 allowed");
  EXPECT_NE(fault(65, 1'000'000, 0), "");  // a state without monomials
}

TEST(LinearAttention, SequencesWithoutAStateMayBeOfAnyWidth) {
  at::manual_seed(1);
  const auto draw = [] { return at::randn({1, kPairTokens, 4000}, at::kDouble) * 0.01; };
  const Operands in{draw(), draw(), draw(), {}};
  const at::Tensor expected = parallel(in, false, 3);
  EXPECT_LE(distance(linear_attention(in.q, in.k, in.v, {}, 3), expected), 1e-12 * largest(expected));
}

TEST(LinearAttention, RecurrentAndChunkedFormsAgreeOver8192Tokens) {
  const Operands in = operands(8192);
  const at::Tensor expected = recurrent(in, true, 2);
  EXPECT_LE(distance(linear_attention(in.q, in.k, in.v, in.keep, 2), expected), 1e-10 * largest(expected));
}

TEST(LinearAttention, ATokenThatKeepsNothingBeginsAfresh) {
  const Operands in = operands(150);
  at::Tensor keep = in.keep.clone();
  keep.select(1, 100).zero_();
  const at::Tensor out = linear_attention(in.q, in.k, in.v, keep, 0);
  const auto later = [](const at::Tensor& x) { return x.narrow(1, 100, 50); };
  const at::Tensor alone = linear_attention(later(in.q), later(in.k), later(in.v), later(in.keep), 0);
  EXPECT_LE(distance(later(out), alone), 1e-12 * largest(alone));
}

TEST(LinearAttention, ItsGradientsAreThoseOfThePlainComposition) {
  for (const int64_t n : {3, 64, 150})
    for (int64_t degree = 0; degree <= kMaxDegree; ++degree)
      for (const bool forgets : {false, true}) {
        const Operands in = operands(n);
        const at::Tensor keep = forgets ? in.keep.to(at::kFloat) : at::Tensor();
        const auto by = [&](auto function) {
          return [=](const std::vector<at::Tensor>& x) {
            return function(x[0], x[1], x[2], keep.defined() ? keep.to(x[0].options()) : keep, degree);
          };
        };
        const std::vector<at::Tensor> three{in.q.to(at::kFloat), in.k.to(at::kFloat), in.v.to(at::kFloat)};
        for (const at::Device device : devices())
          expect_as_exact(by(linear_attention), by(linear_attention_reference), three, device);
        expect_derivative(by(linear_attention), three);
      }
}

TEST(LinearAttention, MonomialsOfTwoVectorsMultiplyToThePolynomial) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({20, 6}, at::kDouble), y = at::randn({20, 6}, at::kDouble);
  const at::Tensor s = (x * y).sum(1);
  const at::Tensor f[] = {s, 1 + s, 1 + s + s * s / 2, 1 + s + s * s / 2 + s * s * s / 6};
  for (int64_t degree = 0; degree <= kMaxDegree; ++degree) {
    const at::Tensor a = monomials(x, degree);
    EXPECT_EQ(a.size(1), monomial_count(6, degree));
    EXPECT_LE(distance((a * monomials(y, degree)).sum(1), f[degree]), 1e-12) << degree;
  }
  EXPECT_EQ(monomial_count(64, 2), 65 * 66 / 2);
}

}  // namespace
}  // namespace rankscope
