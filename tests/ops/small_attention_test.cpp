#include "ops/small_attention.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

namespace rankscope {
namespace {

struct Shape {
  int64_t trials, sequences, queries, keys, width_qk, width_v;
  std::vector<int32_t> heads;
  bool hard = false, shared = false;
};

HeadShape heads_of(const Shape& s) {
  HeadShape out{.heads = s.heads,
                .scale = {},
                .width_qk = s.width_qk,
                .width_v = s.width_v,
                .hard = s.hard,
                .shared_values = s.shared};
  for (const int32_t h : s.heads) out.scale.push_back(1.0f / std::sqrt(float(s.width_qk) / float(h)));
  return out;
}

struct Operands {
  at::Tensor q, k, v;
};

Operands draw(const Shape& s, at::ScalarType type) {
  at::manual_seed(3);
  const auto make = [&](int64_t tokens, int64_t columns) {
    return at::randn({s.trials, s.sequences * tokens, columns}, at::kDouble).to(at::kFloat).to(type);
  };
  return {make(s.queries, s.width_qk), make(s.keys, s.width_qk), make(s.keys, s.width_v)};
}

// Output and gradients of sum(output * c).
std::vector<at::Tensor> pass(const Shape& s, at::ScalarType type, bool reference) {
  Operands o = draw(s, type);
  for (at::Tensor* x : {&o.q, &o.k, &o.v}) x->requires_grad_(true);
  const at::Tensor out = reference ? small_attention_reference(o.q, o.k, o.v, s.queries, s.keys, heads_of(s))
                                   : small_attention(o.q, o.k, o.v, s.queries, s.keys, heads_of(s));
  at::manual_seed(4);
  const at::Tensor c = at::randn(out.sizes(), at::kDouble).to(at::kFloat).to(type);
  std::vector<at::Tensor> all{out.detach()};
  const std::vector<at::Tensor> wanted =
      s.hard ? std::vector<at::Tensor>{o.v} : std::vector<at::Tensor>{o.q, o.k, o.v};
  for (const at::Tensor& g : torch::autograd::grad({(out * c).sum()}, wanted)) all.push_back(g);
  return all;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == 0 ? 0.0 : (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

const std::vector<Shape> kShapes{
    {1, 3, 16, 16, 64, 64, {1}},
    {1, 3, 16, 16, 64, 64, {8}},
    {2, 2, 16, 16, 64, 64, {64, 2}},
    {3, 2, 5, 7, 12, 24, {1, 3, 12}},
    {1, 1, 1, 1, 1, 1, {1}},
    {1, 4, 3, 33, 15, 9, {3}},
    {1, 2, 17, 100, 130, 26, {13}},
    {1, 0, 4, 4, 8, 8, {2}},
    {2, 3, 2, 6, 8, 5, {4, 4}, false, true},
    {1, 3, 6, 6, 8, 8, {4}, true},
    {1, 2, 3, 5, 6, 10, {3}, true, true},
};

TEST(SmallAttention, FusedAndPlainAgreeInDoublePrecision) {
  for (const Shape& s : kShapes) {
    const auto fused = pass(s, at::kDouble, false), plain = pass(s, at::kDouble, true);
    for (size_t i = 0; i < plain.size(); ++i)
      EXPECT_LT(distance(fused[i], plain[i]), 1e-13 * double(s.keys + 8)) << i;
  }
}

// At most twice the error of the plain composition in the same precision, and a rounding or two for where
// that is 0.
TEST(SmallAttention, FusedIsAsExactAsPlainInSinglePrecision) {
  for (const Shape& s : kShapes) {
    const auto exact = pass(s, at::kDouble, true), fused = pass(s, at::kFloat, false),
               plain = pass(s, at::kFloat, true);
    for (size_t i = 0; i < exact.size(); ++i)
      EXPECT_LE(distance(fused[i], exact[i]),
                2 * distance(plain[i], exact[i]) + 5e-7 * (1 + distance(exact[i], at::zeros_like(exact[i]))))
          << i;
  }
}

TEST(SmallAttention, OneProjectionGivesWhatItsThreePartsGive) {
  const Shape s{2, 3, 9, 9, 12, 24, {3, 6}};
  Operands o = draw(s, at::kDouble);
  const at::Tensor qkv = at::cat({o.q, o.k, o.v}, 2).requires_grad_(true);
  for (at::Tensor* x : {&o.q, &o.k, &o.v}) x->requires_grad_(true);
  const at::Tensor joined = small_self_attention(qkv, 9, heads_of(s));
  const at::Tensor apart = small_attention(o.q, o.k, o.v, 9, 9, heads_of(s));
  EXPECT_TRUE(joined.equal(apart));
  const at::Tensor c = at::randn_like(joined);
  const auto g = torch::autograd::grad({(joined * c).sum()}, {qkv});
  const auto parts = torch::autograd::grad({(apart * c).sum()}, {o.q, o.k, o.v});
  EXPECT_TRUE(g[0].equal(at::cat({parts[0], parts[1], parts[2]}, 2)));
}

TEST(SmallAttention, StridedOperandsGiveTheSame) {
  const Shape s{1, 4, 6, 6, 8, 8, {4}};
  const Operands o = draw(s, at::kFloat);
  const at::Tensor wide = at::zeros({1, 24, 30});
  wide.narrow(2, 5, 8).copy_(o.q);
  const at::Tensor turned = o.k.transpose(1, 2).contiguous().transpose(1, 2);  // columns apart
  EXPECT_TRUE(small_attention(wide.narrow(2, 5, 8), turned, o.v, 6, 6, heads_of(s))
                  .equal(small_attention(o.q, o.k, o.v, 6, 6, heads_of(s))));
}

// A score that is no number chooses nothing, and says so in every row that it is a score of.
TEST(SmallAttention, AHardChoiceAmongScoresThatAreNoNumbersIsNone) {
  for (const int64_t rank : {2, 16})  // heads that share a lane, and heads one at a time
    for (const bool first : {true, false}) {
      const Shape shape{1, 2, 3, 5, 2 * rank, 2 * rank, {2}, true};
      const Operands o = draw(shape, at::kFloat);
      o.k[0][first ? 0 : 4][rank] = std::nanf("");  // a key of the first sequence, of its second head
      const at::Tensor out = small_attention(o.q, o.k, o.v, 3, 5, heads_of(shape));
      const at::Tensor plain = small_attention_reference(o.q, o.k, o.v, 3, 5, heads_of(shape));
      EXPECT_TRUE(out.isnan().equal(plain.isnan())) << rank;
      EXPECT_EQ(out.isnan().sum().item<int64_t>(), 3 * rank);
      EXPECT_TRUE(out.nan_to_num().equal(plain.nan_to_num())) << rank;
    }
}

TEST(SmallAttention, GradientsArriveAtOneTrialWithoutALeadingDimension) {
  const Shape s{1, 2, 4, 4, 6, 6, {2}};
  const Operands o = draw(s, at::kDouble);
  const at::Tensor q = o.q[0].clone().requires_grad_(true);
  const at::Tensor out = small_attention(q, o.k[0], o.v[0], 4, 4, heads_of(s));
  EXPECT_EQ(out.dim(), 2);
  EXPECT_EQ(torch::autograd::grad({out.sum()}, {q})[0].sizes(), q.sizes());
}

}  // namespace
}  // namespace rankscope
