// The operators as another program sees them: found by name in torch's dispatcher.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops/adamw.h"
#include "ops/delta_attention.h"
#include "ops/linear.h"
#include "ops/linear_attention.h"
#include "ops/mlp.h"
#include "ops/neighbours.h"
#include "ops/normals.h"
#include "ops/pattern.h"
#include "ops/polynomial_attention.h"
#include "ops/projected_attention.h"
#include "ops/skip_norm.h"
#include "ops/small_attention.h"
#include "ops/squared_error.h"

namespace rankscope {
namespace {

using Stack = std::vector<c10::IValue>;

Stack call_all(const char* name, Stack arguments) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&arguments);
  return arguments;
}

at::Tensor call(const char* name, Stack arguments) {
  return call_all(name, std::move(arguments)).at(0).toTensor();
}

at::Tensor leaf(at::IntArrayRef shape) { return at::randn(shape).requires_grad_(true); }

void expect_same(const at::Tensor& named, const at::Tensor& direct, const std::vector<at::Tensor>& leaves) {
  EXPECT_TRUE(at::equal(named, direct));
  const at::Tensor weight = at::randn(direct.sizes());
  const auto by_name = torch::autograd::grad({named}, leaves, {weight});
  const auto by_call = torch::autograd::grad({direct}, leaves, {weight});
  for (size_t i = 0; i < leaves.size(); ++i) EXPECT_TRUE(at::equal(by_name[i], by_call[i])) << i;
}

TEST(Register, SmallAttentionByNameIsTheFunction) {
  at::manual_seed(1);
  const at::Tensor q = leaf({2, 3 * 4, 12}), k = leaf({2, 3 * 6, 12}), v = leaf({2, 3 * 6, 24});
  const HeadShape shape{.heads = {3, 12}, .scale = {0.5f, 0.25f}, .width_qk = 12, .width_v = 24};
  expect_same(call("rankscope::small_attention", {q, k, v, 4, 6, c10::List<int64_t>({3, 12}),
                                                  c10::List<double>({0.5, 0.25}), false, false}),
              small_attention(q, k, v, 4, 6, shape), {q, k, v});
}

TEST(Register, SmallSelfAttentionByNameIsTheFunction) {
  at::manual_seed(2);
  const at::Tensor qkv = leaf({5 * 7, 8 + 8 + 16});
  const HeadShape shape{.heads = {4}, .scale = {0.5f}, .width_qk = 8, .width_v = 16};
  expect_same(call("rankscope::small_self_attention",
                   {qkv, 7, c10::List<int64_t>({4}), c10::List<double>({0.5}), 16, false}),
              small_self_attention(qkv, 7, shape), {qkv});
}

TEST(Register, ProjectedSelfAttentionByNameIsTheFunction) {
  at::manual_seed(6);
  const at::Tensor x = leaf({2, 5 * 7, 6}), W = leaf({2, 8 + 8 + 16, 6}), b = leaf({2, 32});
  const HeadShape shape{.heads = {4, 2}, .scale = {0.5f, 1.0f}, .width_qk = 8, .width_v = 16};
  const auto attempt = [&](const at::Tensor& weights, const c10::IValue& bias, int64_t tokens) {
    return call("rankscope::projected_self_attention", {x, weights, bias, tokens, c10::List<int64_t>({4, 2}),
                                                        c10::List<double>({0.5, 1.0}), 16, false});
  };
  expect_same(attempt(W, b, 7), projected_self_attention(x, W, b, 7, shape), {x, W, b});
  expect_same(attempt(W, c10::IValue(), 7), projected_self_attention(x, W, {}, 7, shape), {x, W});
  EXPECT_ANY_THROW(attempt(W, b, 6));                   // rows are not whole sequences
  EXPECT_ANY_THROW(attempt(W[0], b, 7));                // no trials
  EXPECT_ANY_THROW(attempt(W.narrow(1, 0, 31), b, 7));  // Q and K of different width
  EXPECT_ANY_THROW(attempt(W, b.narrow(1, 0, 31), 7));  // another bias
  EXPECT_ANY_THROW(attempt(W.to(at::kDouble), b, 7));   // another type
}

TEST(Register, LinearAttentionByNameIsTheFunction) {
  at::manual_seed(7);
  const at::Tensor q = leaf({2, 70, 3}), k = leaf({2, 70, 3}), v = leaf({2, 70, 4}),
                   keep = at::sigmoid(at::randn({2, 70}));
  expect_same(call("rankscope::linear_attention", {q, k, v, keep, 0}), linear_attention(q, k, v, keep),
              {q, k, v});
  expect_same(call("rankscope::linear_attention", {q, k, v, c10::IValue(), 2}),
              linear_attention(q, k, v, {}, 2), {q, k, v});
  EXPECT_ANY_THROW(call("rankscope::linear_attention", {q, k, v.narrow(1, 0, 3), keep, 0}));
  EXPECT_ANY_THROW(call("rankscope::linear_attention", {q, v, v, keep, 0}));
  EXPECT_ANY_THROW(call("rankscope::linear_attention", {q, k, v, keep[0], 0}));
  EXPECT_ANY_THROW(call("rankscope::linear_attention", {q, k, v, keep, -1}));
  EXPECT_ANY_THROW(call("rankscope::linear_attention", {q[0], k[0], v[0], c10::IValue(), 0}));
}

TEST(Register, PolynomialAttentionByNameIsTheFunction) {
  at::manual_seed(7);
  const at::Tensor q = leaf({2, 70, 3}), k = leaf({2, 70, 3}), v = leaf({2, 70, 4});
  expect_same(call("rankscope::polynomial_attention", {q, k, v, 2}), polynomial_attention(q, k, v, 2),
              {q, k, v});
  EXPECT_ANY_THROW(call("rankscope::polynomial_attention", {q, k, v.narrow(1, 0, 3), 2}));
  EXPECT_ANY_THROW(call("rankscope::polynomial_attention", {q, k, v, 0}));
  EXPECT_ANY_THROW(call("rankscope::polynomial_attention", {q, k, v, 4}));
}

TEST(Register, DeltaAttentionByNameIsTheFunction) {
  at::manual_seed(8);
  const at::Tensor q = leaf({2, 70, 3}), k = leaf({2, 70, 3}), v = leaf({2, 70, 4});
  const at::Tensor write = (at::rand({2, 70}) * 0.1).requires_grad_(true),
                   keep = at::rand({2, 70}).requires_grad_(true);
  expect_same(call("rankscope::delta_attention", {q, k, v, write, keep}),
              delta_attention(q, k, v, write, keep), {q, k, v, write, keep});
  expect_same(call("rankscope::delta_attention", {q, k, v, write, c10::IValue()}),
              delta_attention(q, k, v, write, {}), {q, k, v, write});
  EXPECT_ANY_THROW(call("rankscope::delta_attention", {q, k, v, write[0], keep}));
  EXPECT_ANY_THROW(call("rankscope::delta_attention", {q, k, v, write, keep.to(at::kDouble)}));
}

TEST(Register, SkipNormByNameIsTheFunction) {
  at::manual_seed(3);
  const at::Tensor x = leaf({2, 5, 6}), u = leaf({2, 5, 6}), gain = leaf({2, 6}), bias = leaf({2, 6});
  const at::Tensor one = leaf({2, 1}), none;
  expect_same(call("rankscope::skip_norm", {x, u, gain, bias, "layer"}),
              skip_norm(SkipNorm::Kind::layer, x, u, gain, bias), {x, u, gain, bias});
  expect_same(call("rankscope::skip_norm", {x, c10::IValue(), gain, c10::IValue(), "rms"}),
              skip_norm(SkipNorm::Kind::rms, x, none, gain, none), {x, gain});
  expect_same(call("rankscope::skip_norm", {x, u, one, c10::IValue(), "unit"}),
              skip_norm(SkipNorm::Kind::unit, x, u, one, none), {x, u, one});
  EXPECT_ANY_THROW(call("rankscope::skip_norm", {x, u, one, c10::IValue(), "rms"}));
  EXPECT_ANY_THROW(call("rankscope::skip_norm", {x, u, gain, c10::IValue(), "layer"}));
  EXPECT_ANY_THROW(call("rankscope::skip_norm", {x, u, one, c10::IValue(), "batch"}));
}

TEST(Register, SquaredErrorByNameIsTheFunction) {
  at::manual_seed(4);
  const at::Tensor answers = leaf({2, 5, 6}), target = at::randn({2, 5, 6});
  for (const bool stacked : {false, true})
    expect_same(call("rankscope::squared_error", {answers, target, 0.25, stacked}),
                squared_error_sum(answers, target, 0.25, stacked), {answers});
  EXPECT_ANY_THROW(call("rankscope::squared_error", {answers, target[0], 0.25, false}));
}

TEST(Register, LinearByNameIsTheFunction) {
  at::manual_seed(6);
  const at::Tensor x = leaf({2, 7, 6}), W = leaf({2, 12, 6}), b = leaf({2, 12}), none;
  expect_same(call("rankscope::linear", {x, W, b}), linear(x, W, b), {x, W, b});
  expect_same(call("rankscope::linear", {x[0], W[0], c10::IValue()}), linear(x[0], W[0], none), {x, W});
  EXPECT_EQ(call("rankscope::linear", {at::empty({0, 6}), W[0], b[0]}).sizes(), at::IntArrayRef({0, 12}));
  EXPECT_ANY_THROW(call("rankscope::linear", {x, W[0], b}));               // W without trials
  EXPECT_ANY_THROW(call("rankscope::linear", {x, W.transpose(1, 2), b}));  // W the wrong way round
  EXPECT_ANY_THROW(call("rankscope::linear", {x, W, b[0]}));               // b without trials
  EXPECT_ANY_THROW(call("rankscope::linear", {x, W.to(at::kDouble), b}));  // two types
  EXPECT_ANY_THROW(call("rankscope::linear", {x[0][0], W[0], b[0]}));      // a vector
  EXPECT_ANY_THROW(call("rankscope::linear", {at::empty({7, 0}), at::empty({12, 0}), c10::IValue()}));
}

TEST(Register, MlpByNameIsTheFunction) {
  at::manual_seed(5);
  const at::Tensor x = leaf({7, 6}), W_in = leaf({12, 6}), b_in = leaf({12}), W_out = leaf({5, 12});
  const at::Tensor b_out = leaf({5}), none;
  expect_same(call("rankscope::mlp", {x, W_in, b_in, W_out, b_out}), mlp(x, W_in, b_in, W_out, b_out),
              {x, W_in, b_in, W_out, b_out});
  expect_same(call("rankscope::mlp", {x, W_in, c10::IValue(), W_out, c10::IValue()}),
              mlp(x, W_in, none, W_out, none), {x, W_in, W_out});
  EXPECT_ANY_THROW(call("rankscope::mlp", {x, W_out, b_in, W_out, b_out}));
  EXPECT_ANY_THROW(call("rankscope::mlp", {x, W_in, b_out, W_out, b_out}));
}

TEST(Register, NormalsByNameAreTheFunctions) {
  const at::Tensor seeds = at::tensor({5, 6}, at::kLong), steps = at::tensor({0, 9}, at::kLong);
  EXPECT_TRUE(
      at::equal(call("rankscope::normals", {seeds, 3, steps, 17}), draw_normals(seeds, 3, steps, 17)));
  EXPECT_ANY_THROW(call("rankscope::normals", {seeds, 3, steps[0], 17}));
  EXPECT_ANY_THROW(call("rankscope::normals", {seeds, -1, steps, 17}));
}

TEST(Register, UnitNeighboursByNameAreTheFunctions) {
  at::manual_seed(7);
  const at::Tensor points = leaf({2, 3, 9, 5}), asks = at::randn({2, 3, 4, 5}), none;
  const Stack farthest = call_all("rankscope::unit_neighbours", {points, asks, true});
  const Neighbours direct = unit_neighbours(points.detach(), asks, -1);
  ASSERT_EQ(farthest.size(), 3u);
  EXPECT_TRUE(at::equal(farthest[0].toTensor(), direct.points));
  EXPECT_TRUE(at::equal(farthest[1].toTensor(), direct.asks));
  EXPECT_TRUE(at::equal(farthest[2].toTensor(), direct.target));
  EXPECT_FALSE(farthest[0].toTensor().requires_grad());
  const Stack nearest = call_all("rankscope::unit_neighbours", {points, c10::IValue(), false});
  EXPECT_TRUE(nearest.at(1).isNone());
  EXPECT_TRUE(at::equal(nearest.at(2).toTensor(), unit_neighbours(points.detach(), none, 1).target));

  const auto attempt = [&](const at::Tensor& p, const at::Tensor& a) {
    return call("rankscope::unit_neighbours", {p, a, false});
  };
  EXPECT_NO_THROW(attempt(points.narrow(0, 0, 0), asks.narrow(0, 0, 0)));  // no sequences
  EXPECT_ANY_THROW(attempt(points, asks[0]));                              // sequences differ
  EXPECT_ANY_THROW(attempt(points, asks.narrow(3, 0, 4)));                 // widths differ
  EXPECT_ANY_THROW(attempt(points, asks.narrow(2, 0, 0)));                 // nobody asks
  EXPECT_ANY_THROW(attempt(points.narrow(2, 0, 0), asks));                 // no points
  EXPECT_ANY_THROW(attempt(points.to(at::kLong), asks));
  EXPECT_ANY_THROW(attempt(points, asks.to(at::kDouble)));
  EXPECT_ANY_THROW(attempt(points[0][0][0], asks[0][0][0]));
}

TEST(Register, PatternStatisticsByNameAreTheFunctions) {
  at::manual_seed(8);
  const at::Tensor p = at::softmax(at::randn({3, 2, 5, 6}), -1);
  const Stack named = call_all("rankscope::pattern_statistics", {p});
  EXPECT_TRUE(at::equal(named.at(0).toTensor(), pattern_statistics(p).entropy));
  EXPECT_TRUE(at::equal(named.at(1).toTensor(), pattern_statistics(p).received));
  const at::Tensor q = leaf({5, 6});
  expect_same(call("rankscope::pattern_statistics", {q}), pattern_statistics(q).entropy, {q});
  EXPECT_ANY_THROW(call("rankscope::pattern_statistics", {p[0][0][0]}));
  EXPECT_ANY_THROW(call("rankscope::pattern_statistics", {p.narrow(3, 0, 0)}));
  EXPECT_ANY_THROW(call("rankscope::pattern_statistics", {p.to(at::kHalf)}));
}

TEST(Register, ATensorWithoutMemoryOfItsOwnIsRefused) {
  const at::Tensor x = at::randn({4, 6}), W = at::randn({6, 6});
  const at::Tensor meta = at::empty({4, 6}, at::TensorOptions().device(at::kMeta)), sparse = x.to_sparse();
  for (const at::Tensor& other : {meta, sparse}) {
    EXPECT_ANY_THROW(call("rankscope::linear", {other, W, c10::IValue()}));
    EXPECT_ANY_THROW(call("rankscope::skip_norm", {x, other, W[0], c10::IValue(), "rms"}));
    EXPECT_ANY_THROW(call("rankscope::squared_error", {other, other, 1.0, false}));
    EXPECT_ANY_THROW(call("rankscope::pattern_statistics", {other}));
    EXPECT_ANY_THROW(call("rankscope::unit_neighbours", {other, c10::IValue(), false}));
  }
}

TEST(Register, AdamWByNameIsTheFunction) {
  at::manual_seed(6);
  const at::Tensor gradient = at::randn({2, 12}), steps = at::tensor({0, 2}, at::kLong),
                   lr = at::rand({2, 3}), alive = at::ones({2}, at::kInt);
  const std::vector<at::Tensor> before{at::randn({2, 12}), at::randn({2, 12}), at::rand({2, 12})};
  const auto attempt = [&](const at::Tensor& p, const at::Tensor& g, const at::Tensor& m, const at::Tensor& v,
                           const at::Tensor& when, const at::Tensor& rates, const at::Tensor& on,
                           double beta1 = 0.9, double eps = 1e-8) {
    Stack arguments{p, g, m, v, when, rates, on, beta1, 0.99, eps, 0.1};
    c10::Dispatcher::singleton().findSchemaOrThrow("rankscope::adamw_", "").callBoxed(&arguments);
    EXPECT_TRUE(arguments.empty());
  };
  const auto copies = [&] {
    return std::vector<at::Tensor>{before[0].clone(), before[1].clone(), before[2].clone()};
  };
  const auto direct = copies(), named = copies();
  apply_adamw({0.9f, 0.99f, 1e-8f, 0.1f}, steps, lr, alive, {gradient}, {0}, direct[0], direct[1], direct[2]);
  named[0].requires_grad_(true);
  const at::Tensor passed = named[0].square().sum();
  attempt(named[0], gradient.t().contiguous().t(), named[1], named[2], steps, lr, alive);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(named[i], direct[i])) << i;
  EXPECT_FALSE(at::equal(named[0], before[0]));
  EXPECT_ANY_THROW(torch::autograd::grad({passed}, {named[0]}));  // what it was taken at is no longer there

  const auto s = copies();
  const at::Tensor &p = s[0], &m = s[1], &v = s[2], &g = gradient;
  EXPECT_ANY_THROW(attempt(p[0], g[0], m[0], v[0], steps, lr, alive));
  EXPECT_ANY_THROW(attempt(p.to(at::kDouble), g, m, v, steps, lr, alive));
  EXPECT_ANY_THROW(attempt(p, g.to(at::kDouble), m, v, steps, lr, alive));
  EXPECT_ANY_THROW(attempt(p, g.narrow(1, 0, 11), m, v, steps, lr, alive));
  EXPECT_ANY_THROW(attempt(p, g, at::randn({12, 2}).t(), v, steps, lr, alive));
  EXPECT_ANY_THROW(attempt(p, g, v, v, steps, lr, alive));
  EXPECT_ANY_THROW(attempt(p, p, m, v, steps, lr, alive));
  EXPECT_ANY_THROW(attempt(p, g, m, v, steps, m, alive));
  EXPECT_ANY_THROW(attempt(p, g, m, v, steps.to_sparse(), lr, alive));
  EXPECT_ANY_THROW(attempt(p, g, m, v, steps.to(at::kInt), lr, alive));
  EXPECT_ANY_THROW(attempt(p, g, m, v, steps.narrow(0, 0, 1), lr, alive));
  EXPECT_ANY_THROW(attempt(p, g, m, v, steps, lr[0], alive));
  EXPECT_ANY_THROW(attempt(p, g, m, v, steps, lr.narrow(1, 0, 0), alive));
  EXPECT_ANY_THROW(attempt(p, g, m, v, steps, lr, alive.to(at::kBool)));
  EXPECT_ANY_THROW(attempt(p, g, m, v, steps, lr, alive, 1.0));
  EXPECT_ANY_THROW(attempt(p, g, m, v, steps, lr, alive, 0.9, -1.0));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(s[i], before[i])) << i;

  const auto inference = [&](const at::Tensor& x) {
    const c10::InferenceMode on;
    return x.clone();
  };
  const at::Tensor frozen = inference(p);
  EXPECT_ANY_THROW(attempt(frozen, g, m, v, steps, lr, alive));  // not to be written outside of its mode
  EXPECT_TRUE(at::equal(inference(frozen), p));
}

TEST(Register, WhatDoesNotFitIsRefusedBeforeAKernelSeesIt) {
  const at::Tensor x = at::randn({6 * 4, 24});
  const auto attempt = [&](const at::Tensor& qkv, int64_t tokens, std::vector<int64_t> heads,
                           int64_t width_v) {
    return call("rankscope::small_self_attention",
                {qkv, tokens, c10::List<int64_t>(c10::ArrayRef<int64_t>(heads)), c10::List<double>({1.0}),
                 width_v, false});
  };
  EXPECT_NO_THROW(attempt(x, 4, {2}, 8));
  EXPECT_ANY_THROW(attempt(x, 5, {2}, 8));     // rows are not whole sequences
  EXPECT_ANY_THROW(attempt(x, 4, {3}, 8));     // heads do not divide the width
  EXPECT_ANY_THROW(attempt(x, 4, {0}, 8));     // none
  EXPECT_ANY_THROW(attempt(x, 4, {2, 2}, 8));  // more entries than trials
  EXPECT_ANY_THROW(attempt(x, 4, {2}, 7));     // Q and K of different width
  EXPECT_ANY_THROW(attempt(x, 0, {2}, 8));     // no tokens
  EXPECT_ANY_THROW(attempt(x.to(at::kHalf), 4, {2}, 8));
  EXPECT_ANY_THROW(attempt(x[0], 4, {2}, 8));
  EXPECT_ANY_THROW(attempt(at::empty({0, 4, 24}), 4, {2}, 8));  // a stack without trials
  EXPECT_ANY_THROW(call(
      "rankscope::small_attention",  // keys and values of different length
      {x, x, x.narrow(0, 0, 20), 4, 4, c10::List<int64_t>({2}), c10::List<double>({1.0}), false, false}));
}

}  // namespace
}  // namespace rankscope
