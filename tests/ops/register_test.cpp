// The operators as another program sees them: found by name in torch's dispatcher.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops/mlp.h"
#include "ops/normals.h"
#include "ops/skip_norm.h"
#include "ops/small_attention.h"
#include "ops/squared_error.h"

namespace rankscope {
namespace {

using Stack = std::vector<c10::IValue>;

at::Tensor call(const char* name, Stack arguments) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&arguments);
  return arguments.at(0).toTensor();
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
  EXPECT_ANY_THROW(call(
      "rankscope::small_attention",  // keys and values of different length
      {x, x, x.narrow(0, 0, 20), 4, 4, c10::List<int64_t>({2}), c10::List<double>({1.0}), false, false}));
}

}  // namespace
}  // namespace rankscope
