#include "ops/long_attention.h"

#include "ops/fused.h"
#include "ops/ops_support.h"

namespace rankscope {
namespace {

struct Plain {
  at::Tensor out, mass, entropy, received;
};

/// The plain composition, in the precision of its operands.
Plain composed(const LongTensors& x, const LongMask& mask) {
  const int64_t H = x.q.size(2), T = x.q.size(1), K = x.k.size(1);
  const auto heads = [&](const at::Tensor& t) {
    return t.repeat_interleave(H / t.size(2), 2).transpose(1, 2);
  };
  at::Tensor scores = at::matmul(x.q.transpose(1, 2) * mask.scale, heads(x.k).transpose(2, 3));
  const at::Tensor i = at::arange(T, scores.device()).unsqueeze(1), j = at::arange(K, scores.device());
  if (mask.causal) scores = scores.masked_fill(j > i, -INFINITY);
  if (mask.window > 0) scores = scores.masked_fill((i - j).abs() >= mask.window, -INFINITY);
  at::Tensor p = at::softmax(scores, -1);
  if (x.sinks.defined()) {
    const at::Tensor sink = x.sinks.view({1, H, 1, 1}).expand({x.q.size(0), H, T, 1});
    p = at::softmax(at::cat({scores, sink}, -1), -1).narrow(-1, 0, K);
  }
  const at::Tensor mass = p.sum(-1), rest = p / mass.unsqueeze(-1);
  return {at::matmul(p, heads(x.v)).transpose(1, 2), mass, at::special_entr(rest).sum(-1), p.sum(2)};
}

LongTensors to(const LongTensors& x, at::Device device, at::ScalarType type) {
  const auto there = [&](const at::Tensor& t) { return t.defined() ? t.to(device, type) : t; };
  return {there(x.q), there(x.k), there(x.v), there(x.sinks)};
}

// At most twice the error of the composition in float32, and what rounding a number leaves of it.
void expect_as_exact(const at::Tensor& ours, const at::Tensor& theirs, const at::Tensor& exact,
                     const char* what) {
  ASSERT_EQ(ours.sizes(), exact.sizes()) << what;
  EXPECT_LE(distance(ours, exact), 2 * distance(theirs, exact) + 4 * 0x1p-23 * std::max(1.0, largest(exact)))
      << what;
}

TEST(LongAttentionOperator, IsThePlainCompositionAcrossSegmentsHeadsAndMasks) {
  if (!fused_kernels()) GTEST_SKIP() << "switched off: tiles";
  at::manual_seed(3);
  struct Case {
    int64_t samples, queries, keys, heads, key_heads, value_heads, width, value_width;
    LongMask mask;
    bool sinks;
  };
  for (const Case& c : {Case{2, 700, 700, 4, 2, 2, 16, 24, {.25, true, 0}, false},
                        Case{1, 1100, 1100, 2, 1, 2, 12, 8, {.3, true, 130}, true},
                        Case{1, 520, 300, 3, 3, 1, 64, 4, {.125, false, 0}, true},
                        Case{1, 600, 600, 2, 2, 2, 128, 128, {.1, false, 0}, false}}) {
    const LongTensors x{normals({c.samples, c.queries, c.heads, c.width}),
                        normals({c.samples, c.keys, c.key_heads, c.width}),
                        normals({c.samples, c.keys, c.value_heads, c.value_width}),
                        c.sinks ? normals({c.heads}) : at::Tensor()};
    const Plain exact = composed(to(x, at::kCPU, at::kDouble), c.mask);
    for (const at::Device device : devices()) {
      const LongTensors there = to(x, device, at::kFloat);
      ASSERT_TRUE(long_attention_takes(there, c.mask));
      const Plain theirs = composed(there, c.mask);
      const at::Tensor out = at::full({c.samples, c.queries, c.heads, c.value_width}, NAN, there.q.options());
      const LongStatistics found = long_attention(there, c.mask, true, out);
      expect_as_exact(out, theirs.out, exact.out, "out");
      expect_as_exact(found.mass, theirs.mass, exact.mass, "mass");
      expect_as_exact(found.entropy, theirs.entropy, exact.entropy, "entropy");
      expect_as_exact(found.received, theirs.received, exact.received, "received");
    }
  }
}

TEST(LongAttentionOperator, LeavesToTilesWhatItDoesNotCompute) {
  if (!fused_kernels()) GTEST_SKIP() << "switched off: tiles";
  const auto takes = [](const at::Tensor& q, const at::Tensor& k, const LongMask& mask) {
    return long_attention_takes({q, k, k, {}}, mask);
  };
  const at::Tensor q = at::ones({1, 9, 2, 4}), k = at::ones({1, 8, 2, 4});
  EXPECT_TRUE(takes(q, q, {1, true, 3}));
  EXPECT_TRUE(takes(q, k, {}));
  EXPECT_FALSE(takes(q, k, {1, true, 0}));  // which query stands beside which key?
  EXPECT_FALSE(takes(q, k, {1, false, 3}));
  EXPECT_FALSE(takes(q.to(at::kDouble), q.to(at::kDouble), {}));
  EXPECT_FALSE(takes(q.detach().clone().requires_grad_(true), q, {}));
  EXPECT_FALSE(takes(q, at::ones({1, 9, 3, 4}), {}));  // two heads cannot share three
}

}  // namespace
}  // namespace rankscope
