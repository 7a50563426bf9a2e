// Spectrum, unfoldings, token map and Jacobian against the operator written out as a matrix.
#include "operator/spectrum.h"

#include <gtest/gtest.h>

#include "operator/dense_reference.h"
#include "operator/jacobian.h"
#include "operator/token_map.h"
#include "support/reference.h"

namespace rankscope {
namespace {

using namespace test;

double participation(const std::vector<double>& sigma) {
  double two = 0, four = 0;
  for (const double s : sigma) two += s * s, four += s * s * s * s;
  return two * two / four;
}

TEST(TopSpectrum, EqualsTheDenseSingularValuesWithinItsResiduals) {
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    const Tiny m(place, "", {}, {9});
    const FrozenNetwork frozen = m.freeze();
    const std::vector<double> exact = reference::sigma(dense(frozen.trunk(), 9, m.spec.width));
    const TopSpectrum top = top_spectrum(frozen.trunk(), frozen.input(), 8, 1e-6, 400, 3);
    ASSERT_EQ(top.sigma.size(), 8u);
    EXPECT_LE(top.applications, 400);
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_LE(top.residual[i], 1e-6);
      EXPECT_NEAR(top.sigma[i], exact[i], 1e-9 * exact[0])
          << i;  // the error is the residual's square over the gap
    }
  }
}

TEST(TopSpectrum, SaysWhenItWasNotGivenEnough) {
  const Tiny m(NormPlace::post, "", {}, {9});
  const FrozenNetwork frozen = m.freeze();
  const TopSpectrum top = top_spectrum(frozen.trunk(), frozen.input(), 16, 1e-8, 34, 3);
  EXPECT_EQ(top.applications, 34);
  EXPECT_GT(top.residual.back(), 1e-8);
  // What a residual promises holds all the same: a singular value lies that close.
  const std::vector<double> exact = reference::sigma(dense(frozen.trunk(), 9, m.spec.width));
  for (size_t i = 0; i < top.sigma.size(); ++i) {
    double nearest = 1e300;
    for (const double s : exact) nearest = std::min(nearest, std::fabs(s - top.sigma[i]));
    EXPECT_LE(nearest, top.residual[i] * top.sigma[i] + 1e-12 * exact[0]) << i;
  }
}

TEST(TopSpectrum, OfALowRankOperatorEnds) {
  // Attention alone with every value projected to one direction: the operator has few singular values at all.
  Tiny m(NormPlace::post, "skip+mlp+norm", {}, {4});
  m.source->overwrite = [](const std::string& name, at::Tensor& t) {
    if (name == "attn.W_V") t = at::ones({t.size(0), 1}, at::kDouble).matmul(t.narrow(0, 0, 1));
  };
  const FrozenNetwork frozen = m.freeze();
  const std::vector<double> exact = reference::sigma(dense(frozen.trunk(), 4, m.spec.width));
  const TopSpectrum top = top_spectrum(frozen.trunk(), frozen.input(), 16, 1e-8, 400, 3);
  EXPECT_LT(top.applications, 60);
  EXPECT_NEAR(top.sigma[0], exact[0], 1e-10 * exact[0]);
}

TEST(Unfoldings, AgreeWithTheDenseTensorWithinTheirErrors) {
  const Tiny m(NormPlace::post, "", {}, {6});
  const FrozenNetwork frozen = m.freeze();
  const int64_t N = 6, d = m.spec.width;
  const at::Tensor T = dense(frozen.trunk(), N, d).view({N, d, N, d});
  const Unfoldings u = unfoldings(frozen.trunk(), frozen.input(), 300, 5);
  const double fro = T.norm().item<double>();
  EXPECT_NEAR(u.frobenius, fro, 4 * u.frobenius_error);
  EXPECT_GT(u.frobenius_error, 0.0);
  EXPECT_LT(u.frobenius_error, 0.05 * fro);
  const auto unfolded = [&](int64_t index) {
    return participation(reference::sigma(T.movedim(index, 0).reshape({T.size(index), -1})));
  };
  const auto check = [](const Unfoldings::Ratio& ours, double exact) {
    EXPECT_GT(ours.stderr_, 0.0);
    EXPECT_LT(ours.stderr_, 0.1 * exact);
    EXPECT_NEAR(ours.value, exact, 4 * ours.stderr_);
  };
  check(u.matrix, participation(reference::sigma(T.reshape({N * d, N * d}))));
  check(u.token_out, unfolded(0));
  check(u.channel_out, unfolded(1));
  check(u.token_in, unfolded(2));
  check(u.channel_in, unfolded(3));
}

TEST(TokenMap, EqualsTheDenseBlocksAndSumsToTheOutput) {
  const Tiny m(NormPlace::pre, "", {}, {6});
  const FrozenNetwork frozen = m.freeze();
  const int64_t N = 6, d = m.spec.width;
  const at::Tensor T = dense(frozen.trunk(), N, d).view({N, d, N, d});
  at::manual_seed(1);
  const at::Tensor u = at::randn({N, d}, at::kDouble);
  at::Tensor in, in_out;
  token_map(frozen.trunk(), frozen.input(), u, in, in_out);
  for (int64_t i = 0; i < N; ++i)
    for (int64_t j = 0; j < N; ++j) {
      const at::Tensor y = T[i].select(1, j).mv(frozen.input()[j]);
      EXPECT_NEAR(in[i][j].item<double>(), y.norm().item<double>(), 1e-11);
      EXPECT_NEAR(in_out[i][j].item<double>(), y.dot(u[i]).item<double>(), 1e-11);
    }
  const at::Tensor sum = in_out.sum(1) + (u * frozen.bias()).sum(1);
  EXPECT_LE(distance(sum, (u * frozen.output()).sum(1)), 1e-11);
}

TEST(Jacobian, IsTheOperatorWhereTheNetworkIsAffine) {
  // No queries, no norms, no MLP: attention does not depend on the input.
  Tiny m(NormPlace::post, "mlp+norm");
  m.source->overwrite = [](const std::string& name, at::Tensor& t) {
    if (name == "attn.W_Q" || name == "attn.b_Q") t = at::zeros_like(t);
  };
  const FrozenNetwork frozen = m.freeze();
  const JacobianDistance j = jacobian_distance(frozen, m.spec, *m.source, m.batch, 3, 1);
  EXPECT_LT(j.relative, 1e-8);
  EXPECT_NEAR(j.norm_ratio, 1.0, 1e-8);
}

TEST(Jacobian, DiffersWhereItDoesNotAndAgreesWithDenseDifferences) {
  const Tiny m(NormPlace::post, "", {}, {4});
  const FrozenNetwork frozen = m.freeze();
  const int64_t n = 4 * m.spec.width;
  at::Tensor J = at::empty({n, n}, at::kDouble);
  for (int64_t k = 0; k < n; ++k) {
    at::Tensor e = at::zeros({n}, at::kDouble);
    e[k] = 1e-6;
    const at::Tensor step = e.view_as(frozen.input());
    J.select(1, k).copy_((network_output(m.spec, *m.source, m.batch, frozen.input() + step) -
                          network_output(m.spec, *m.source, m.batch, frozen.input() - step))
                             .flatten() /
                         2e-6);
  }
  const at::Tensor T = dense(frozen.trunk(), 4, m.spec.width);
  const double exact = ((J - T).norm() / J.norm()).item<double>();
  EXPECT_GT(exact, 0.01);
  const JacobianDistance j = jacobian_distance(frozen, m.spec, *m.source, m.batch, 200, 1);
  EXPECT_NEAR(j.relative, exact, 4 * j.relative_error);
  EXPECT_NEAR(j.norm_ratio, (T.norm() / J.norm()).item<double>(), 4 * j.norm_ratio_error);
  for (const double error : {j.relative_error, j.norm_ratio_error}) {
    EXPECT_GT(error, 0.0);
    EXPECT_LT(error, 0.05);
  }
}

TEST(Jacobian, NeedsDoublePrecision) {
  const Loaded m = load("bert", "float32");
  const FrozenNetwork frozen(m.spec, *m.source, m.batch);
  EXPECT_THROW(jacobian_distance(frozen, m.spec, *m.source, m.batch, 1, 1), Error);
}

}  // namespace
}  // namespace rankscope
