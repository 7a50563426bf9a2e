#include "ops/mlp.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "support/rounding.h"

namespace rankscope {
namespace {

struct Shape {
  int64_t trials, rows, in, hidden, out;  // trials 0: no leading dimension
  bool bias_in = true, bias_out = true;
};

// x, W_in, b_in, W_out, b_out; an absent bias is undefined.
using Operands = std::vector<at::Tensor>;

Operands draw(const Shape& s, at::ScalarType type) {
  at::manual_seed(3);
  const auto make = [&](std::vector<int64_t> sizes) {
    if (s.trials > 0) sizes.insert(sizes.begin(), s.trials);
    return at::randn(sizes, at::kDouble).to(at::kFloat).to(type).requires_grad_(true);
  };
  return {make({s.rows, s.in}), make({s.hidden, s.in}), s.bias_in ? make({s.hidden}) : at::Tensor(),
          make({s.out, s.hidden}), s.bias_out ? make({s.out}) : at::Tensor()};
}

at::Tensor fused(const Operands& o) { return mlp(o[0], o[1], o[2], o[3], o[4]); }

// Written out, not the composition beside the operator.
at::Tensor plain(const Operands& o) {
  const auto linear = [](const at::Tensor& x, const at::Tensor& W, const at::Tensor& b) {
    const at::Tensor y = at::matmul(x, W.transpose(-1, -2));
    return b.defined() ? y + b.unsqueeze(-2) : y;
  };
  const at::Tensor h = linear(o[0], o[1], o[2]);
  return linear(at::where(h > 0, h, at::zeros_like(h)), o[3], o[4]);
}

// The output, and the gradients of sum(output * c).
std::vector<at::Tensor> pass(const Operands& o, at::Tensor (*network)(const Operands&)) {
  const at::Tensor y = network(o);
  at::manual_seed(4);
  const at::Tensor c = at::randn(y.sizes(), at::kDouble).to(at::kFloat).to(y.scalar_type());
  std::vector<at::Tensor> leaves, all{y.detach()};
  for (const at::Tensor& p : o)
    if (p.defined()) leaves.push_back(p);
  for (const at::Tensor& g : torch::autograd::grad({(y * c).sum()}, leaves)) all.push_back(g);
  return all;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  return a.numel() == 0 ? 0.0 : (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}
double size_of(const at::Tensor& a) { return distance(a, at::zeros_like(a)); }

// Rows and units that fill pieces, cut them, or are fewer.
const std::vector<Shape> kShapes{
    {0, 1, 1, 1, 1},
    {0, 7, 5, 3, 2},
    {0, 0, 4, 9, 4},
    {0, 256, 16, 512, 16},
    {0, 257, 9, 513, 9, false, true},
    {0, 530, 33, 1030, 17, true, false},
    {0, 5, 6, 700, 6, false, false},
    {1, 3, 4, 5, 6},
    {3, 258, 7, 519, 8},
    {2, 0, 4, 5, 4},
    {2, 31, 8, 20, 8, false, false},
};

TEST(Mlp, FusedAndPlainAgreeInDoublePrecision) {
  for (const Shape& s : kShapes) {
    const auto ours = pass(draw(s, at::kDouble), fused), theirs = pass(draw(s, at::kDouble), plain);
    for (size_t i = 0; i < theirs.size(); ++i)
      EXPECT_LE(distance(ours[i], theirs[i]), 1e-13 * (1 + size_of(theirs[i])))
          << i << " of " << s.rows << " x " << s.hidden;
  }
}

// At most twice the error of the plain composition in the same precision, and a rounding or two for where
// that is 0.
TEST(Mlp, FusedIsAsExactAsPlainInSinglePrecision) {
  for (const Shape& s : kShapes) {
    const auto exact = pass(draw(s, at::kDouble), plain), ours = pass(draw(s, at::kFloat), fused),
               theirs = pass(draw(s, at::kFloat), plain);
    for (size_t i = 0; i < exact.size(); ++i)
      EXPECT_LE(distance(ours[i], exact[i]),
                2 * distance(theirs[i], exact[i]) + 8 * test::kFloatRounding * (1 + size_of(exact[i])))
          << i << " of " << s.rows << " x " << s.hidden;
  }
}

// Along a random direction of all operands at once, in steps so short that no hidden unit crosses its kink.
TEST(Mlp, GradientsAreDerivatives) {
  for (const Shape& s : kShapes) {
    const Operands o = draw(s, at::kDouble);
    const std::vector<at::Tensor> gradients = pass(o, fused);
    at::manual_seed(4);
    const at::Tensor c = at::randn(gradients[0].sizes(), at::kDouble).to(at::kFloat).to(at::kDouble);
    Operands forth, back;
    const double h = 1e-8;
    double slope = 0;
    size_t next = 1;
    for (const at::Tensor& p : o) {
      const at::Tensor way = p.defined() ? at::randn_like(p) : p;
      forth.push_back(p.defined() ? (p + h * way).detach() : p);
      back.push_back(p.defined() ? (p - h * way).detach() : p);
      if (p.defined()) slope += (gradients[next++] * way).sum().item<double>();
    }
    const at::Tensor above = fused(forth) * c, below = fused(back) * c;
    const double difference = (above.sum().item<double>() - below.sum().item<double>()) / (2 * h);
    // Both sums are rounded, and so are the operands they were made of: 2^-53 of their terms each, over h.
    const double rounding = 0x1p-52 * above.abs().sum().item<double>() / h;
    EXPECT_NEAR(slope, difference, rounding) << s.rows << " x " << s.hidden;
  }
}

TEST(Mlp, StridedOperandsGiveTheSame) {
  const Operands o = draw({0, 40, 12, 30, 10}, at::kDouble);
  Operands strided = o;
  const at::Tensor wide = at::zeros({40, 20}, at::kDouble);
  wide.narrow(1, 3, 12).copy_(o[0].detach());
  strided[0] = wide.narrow(1, 3, 12).requires_grad_(true);
  strided[3] = o[3].detach().t().contiguous().t().requires_grad_(true);  // columns apart
  const auto there = pass(strided, fused), here = pass(o, fused);
  for (size_t i = 0; i < here.size(); ++i)
    EXPECT_LE(distance(there[i], here[i]), 1e-13 * (1 + size_of(here[i]))) << i;
}

TEST(Mlp, AnInputWithoutGradientsLeavesTheOthersTheirs) {
  Operands o = draw({0, 9, 4, 7, 4}, at::kDouble);
  const auto all = pass(o, fused);
  o[0] = o[0].detach();
  const at::Tensor y = fused(o);
  at::manual_seed(4);
  const at::Tensor c = at::randn(y.sizes(), at::kDouble).to(at::kFloat).to(at::kDouble);
  const auto rest = torch::autograd::grad({(y * c).sum()}, {o[1], o[2], o[3], o[4]});
  for (size_t i = 0; i < rest.size(); ++i) EXPECT_LE(distance(rest[i], all[i + 2]), 1e-13) << i;
}

TEST(Mlp, ANanStaysOne) {
  Operands o = draw({0, 3, 4, 5, 6}, at::kFloat);
  o[0] = o[0].detach().clone();
  o[0][1][2] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor y = fused(o);
  EXPECT_TRUE(y[1].isnan().all().item<bool>());
  EXPECT_FALSE(y[0].isnan().any().item<bool>());
}

}  // namespace
}  // namespace rankscope
