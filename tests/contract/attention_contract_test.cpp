// What every attention variant promises, held for each file of src/attention/.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "attention/variant.h"
#include "base/error.h"

namespace rankscope {
namespace {

constexpr int64_t S = 3, T = 9, H = 4, d = 6;

class AttentionContract : public testing::TestWithParam<const AttentionVariant*> {
 protected:
  AttentionContract() {
    at::manual_seed(4);
    const auto options = at::TensorOptions().dtype(at::kDouble);
    spec.heads = H;
    spec.kv_heads = 2;
    spec.d_qk = spec.d_v = d;
    spec.scale = 0.5;
    spec.rotary_frequencies = {1.0, 0.1, 0.01};
    q = at::randn({S, T, H, d}, options);
    k = at::randn({S, T, 2, d}, options);
    gates = at::sigmoid(at::randn({S, T, 2, 2}, options));
    spec.causal = GetParam()->only_causal;
    positions = at::arange(T, at::kLong).expand({S, T}).contiguous();
    types = at::randint(0, 2, {S, T}, at::kLong);
    for (const char* name : {"attn.r_w_bias", "attn.r_r_bias", "attn.r_s_bias"})
      weights.set(name, at::randn({H * d}, options));
    weights.set("attn.mix", at::randn({H}, options));
    for (const char* name : {"attn.key_filter", "attn.value_filter"})
      weights.set(name, at::randn({H, 5}, options));
    for (const char* name : {"attn.lambda_q1", "attn.lambda_k1", "attn.lambda_q2", "attn.lambda_k2"})
      weights.set(name, at::randn({d / 2}, options) * 0.3);
    weights.set("attn.W_R", at::randn({H * d, 24}, options) * 0.3);
    weights.set("attn.seg_embed", at::randn({2, H * d}, options));
  }
  std::unique_ptr<PreparedAttention> prepare() {
    spec.variant = variant_text();
    if (spec.variant == "differential") spec.rotary_frequencies = {1.0};  // a pair must fit half a head
    const at::Tensor& keys = key_positions.defined() ? key_positions : positions;
    return GetParam()->prepare({spec, weights, name, q, k, positions, keys, types, &gates});
  }
  static std::string variant_text() {
    const std::string_view name = GetParam()->name;
    return name == "sigmoid_of_this_test" ? "softmax" : std::string(name);
  }
  at::Tensor whole() { return prepare()->pattern(0, S, 0, T); }

  AttentionSpec spec;
  Weights weights;
  const std::string name = "attn";
  at::Tensor gates;                                  // what a state is told of each key, as k goes
  at::Tensor q, k, positions, key_positions, types;  // undefined key_positions: those of the queries
};

double distance(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

constexpr double kSum = 2 * T * 0x1p-53;  // T entries, each rounded when it is made and when it is added

TEST_P(AttentionContract, RowsSumToOneWhereItSaysSoAndOnlyThere) {
  for (const bool causal : {false, true}) {
    if (causal ? !GetParam()->may_be_causal : GetParam()->only_causal) continue;
    spec.causal = causal;
    const at::Tensor p = whole();
    EXPECT_EQ(p.sizes(), (at::IntArrayRef{S, H, T, T}));
    EXPECT_TRUE(at::isfinite(p).all().item<bool>());
    const double off = distance(p.sum(-1), at::ones({S, H, T}, at::kDouble));
    if (GetParam()->row_stochastic) {
      EXPECT_GE(p.min().item<double>(), 0.0);
      EXPECT_LE(off, kSum);
    } else {
      EXPECT_GT(off, kSum) << "every row sums to one: it need not declare otherwise";
    }
  }
}

// What the split arithmetic and the cubic bound take as given. Token types may be there, masks and positions
// not.
TEST_P(AttentionContract, NothingButTheTokensDecidesWhereItSaysSoAndOnlyThere) {
  spec.positions = false;
  const at::Tensor keys = k.repeat_interleave(H / 2, 2);
  const at::Tensor scores = at::einsum("sihd,sjhd->shij", {q, keys}) * spec.scale;
  // Scores are sums of d products, at most a few tens here: a softmax moves by what they do.
  const double rounding = 4 * d * 0x1p-53 * scores.abs().max().item<double>();
  const double off = distance(whole(), at::softmax(scores, -1));
  if (GetParam()->only_tokens)
    EXPECT_LE(off, rounding);
  else
    EXPECT_GT(off, rounding) << "the pattern is softmax(Q K^T): it need not declare otherwise";
}

// More keys than queries, in an order of their own: the columns are in that order.
TEST_P(AttentionContract, AnotherStreamsTokensAreReadUnlessItSaysThatItCannot) {
  types = at::Tensor();
  k = at::randn({S, T + 2, 2, d}, at::kDouble);
  key_positions = at::arange(T + 2, at::kLong).expand({S, T + 2}).contiguous();
  if (GetParam()->own_tokens_only) {
    EXPECT_ANY_THROW(whole()) << "it reads them: it need not declare otherwise";
    return;
  }
  const at::Tensor p = whole();
  EXPECT_EQ(p.sizes(), (at::IntArrayRef{S, H, T, T + 2}));
  const at::Tensor order = at::randperm(T + 2, at::kLong);
  k = k.index_select(1, order);
  key_positions = key_positions.index_select(1, order);
  EXPECT_LE(distance(whole(), p.index_select(3, order)), kSum);
}

TEST_P(AttentionContract, EntriesAreSharesWhereItSaysSoAndOnlyThere) {
  const double least = whole().min().item<double>(), most = whole().sum(-1).max().item<double>();
  if (GetParam()->shares) {
    EXPECT_GE(least, 0.0);
    EXPECT_LE(most, 1 + kSum);
  } else {
    EXPECT_TRUE(least < 0 || most > 1 + kSum) << "entries are shares: it need not declare otherwise";
  }
}

// The leak detector: what stands behind a query must not change its row.
TEST_P(AttentionContract, LaterTokensDoNotReachEarlierRowsOrItMayNotBeCausal) {
  spec.causal = true;
  if (!GetParam()->may_be_causal) {
    EXPECT_THROW(whole(), Error) << "it takes the mask: it need not declare otherwise";
    return;
  }
  const at::Tensor before = whole().narrow(2, 0, T - 2);
  q.narrow(1, T - 2, 2).normal_();
  k.narrow(1, T - 2, 2).normal_();
  EXPECT_EQ(distance(whole().narrow(2, 0, T - 2), before), 0.0);
  // Nor may that they are there at all. Sums of another length may round otherwise.
  for (at::Tensor* x : {&q, &k, &gates, &positions, &types}) *x = x->narrow(1, 0, T - 2).contiguous();
  const at::Tensor alone = prepare()->pattern(0, S, 0, T - 2);
  EXPECT_LE(distance(alone, before.narrow(3, 0, T - 2)), kSum * (1 + before.abs().max().item<double>()));
}

TEST_P(AttentionContract, AStateRunsForwardWithoutAMaskToo) {
  spec.causal = false;
  const double ahead = whole().triu(1).abs().max().item<double>();
  if (!GetParam()->only_causal) {
    EXPECT_GT(ahead, 0.0) << "it never looks ahead: it need not declare otherwise";
    return;
  }
  EXPECT_EQ(ahead, 0.0);
  spec.window = 4;
  EXPECT_THROW(whole(), Error);
}

TEST_P(AttentionContract, MasksHideWhatTheyShould) {
  spec.causal = GetParam()->may_be_causal;
  spec.window = GetParam()->only_causal ? 0 : 4;
  const at::Tensor p = whole();
  EXPECT_EQ(p.triu(spec.causal ? 1 : 4).abs().max().item<double>(), 0.0);
  if (spec.window > 0) {
    EXPECT_EQ(p.tril(-4).abs().max().item<double>(), 0.0);
  }
  EXPECT_GT(p.diagonal(-3, 2, 3).abs().max().item<double>(), 0.0);  // hard attention looks there now and then
}

TEST_P(AttentionContract, TilesAreRowsOfTheWhole) {
  spec.causal = GetParam()->may_be_causal;
  const at::Tensor p = whole();
  const auto attention = prepare();
  for (const auto& [first, count, row, rows] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t>{0, 3, 0, 1}, {1, 2, 4, 5}, {2, 1, 3, 2}})
    EXPECT_LT(
        distance(attention->pattern(first, count, row, rows), p.narrow(0, first, count).narrow(2, row, rows)),
        1e-14);
}

TEST_P(AttentionContract, MoreScoreIsMoreAttentionAndHiddenKeysHaveNone) {
  spec.causal = GetParam()->may_be_causal;
  spec.window = GetParam()->only_causal ? 0 : 4;
  at::Tensor scores;
  const at::Tensor p = prepare()->pattern(0, S, 0, T, &scores);
  ASSERT_EQ(scores.defined(), GetParam()->has_scores);
  EXPECT_TRUE(at::equal(p, whole()));  // asking for them changes nothing
  if (!scores.defined()) return;
  ASSERT_EQ(scores.sizes(), p.sizes());
  const at::Tensor hidden =
      at::ones({T, T}, at::kBool).triu(spec.causal ? 1 : 4).logical_or(at::ones({T, T}, at::kBool).tril(-4));
  EXPECT_TRUE(at::equal(scores.eq(-INFINITY), hidden.expand_as(scores)));
  const at::Tensor by_score = p.gather(3, std::get<1>(scores.sort(3)));
  EXPECT_GE((by_score.narrow(3, 1, T - 1) - by_score.narrow(3, 0, T - 1)).min().item<double>(), 0.0);
}

TEST_P(AttentionContract, SamplesDoNotSeeEachOther) {
  const at::Tensor p = whole();
  q[0] = at::randn({T, H, d}, at::kDouble);
  k[0] = at::randn({T, 2, d}, at::kDouble);
  EXPECT_EQ(distance(whole().narrow(0, 1, 2), p.narrow(0, 1, 2)), 0.0);
}

TEST_P(AttentionContract, HeadsDoNotSeeEachOther) {
  const at::Tensor p = whole();
  q.select(2, 3).zero_();
  EXPECT_EQ(distance(whole().narrow(1, 0, 3), p.narrow(1, 0, 3)), 0.0);
}

TEST_P(AttentionContract, PositionsAreLeftOutWhenAsked) {
  // A mask is an order, too, and so are blocks and filters that slide.
  if (GetParam()->only_causal || GetParam()->name == "mixed") return;
  spec.positions = false;
  types = at::Tensor();
  // Without positions and segments, the same tokens in another order are the same pattern in that order.
  const at::Tensor order = at::tensor({3, 1, 4, 0, 5, 8, 2, 6, 7}, at::kLong);
  const at::Tensor p = whole();
  q = q.index_select(1, order);
  k = k.index_select(1, order);
  EXPECT_LT(distance(whole(), p.index_select(2, order).index_select(3, order)), 1e-13);
}

TEST_P(AttentionContract, OnlyDistancesCount) {
  types = at::Tensor();
  const at::Tensor p = whole();
  positions = positions + 100;
  EXPECT_LT(distance(whole(), p), 1e-11);  // angles of 100 carry 1e-14 each
}

// Against central differences of step h along random directions: truncation h^2 times third derivatives of
// order 1, rounding 1e-16 / h, both below 1e-9 here.
TEST_P(AttentionContract, GradientsAgreeWithDifferences) {
  spec.causal = GetParam()->may_be_causal;
  const at::Tensor weight = at::randn({S, H, T, T}, at::kDouble);
  const auto value = [&] { return (whole() * weight).sum(); };
  const at::Tensor q0 = q, k0 = k, dq = at::randn_like(q), dk = at::randn_like(k);
  constexpr double h = 1e-5;
  q = q0 + h * dq, k = k0 + h * dk;
  const double above = value().item<double>();
  q = q0 - h * dq, k = k0 - h * dk;
  const double below = value().item<double>();
  q = q0.clone().requires_grad_(true), k = k0.clone().requires_grad_(true);
  const at::Tensor sum = value();
  double slope = 0;
  if (sum.requires_grad()) {
    const auto found = torch::autograd::grad({sum}, {q, k}, {}, {}, false, /*allow_unused=*/true);
    if (found[0].defined()) slope += (found[0] * dq).sum().item<double>();
    if (found[1].defined()) slope += (found[1] * dk).sum().item<double>();
  }
  EXPECT_NEAR(slope, (above - below) / (2 * h), 1e-6 * (1 + std::abs(slope)));
  if (GetParam()->name != "hard") {
    EXPECT_NE(slope, 0.0);
  }
}

// 40 tokens: more than the features of those that have some, fewer than nobody would compute whole.
TEST_P(AttentionContract, WhatItCarriesWithoutPatternsIsThePatternsTimesValues) {
  if (GetParam()->output == nullptr) return;
  constexpr int64_t kTokens = 40, kValues = 5;
  const auto options = at::TensorOptions().dtype(at::kDouble);
  q = at::randn({S, kTokens, H, d}, options);
  k = at::randn({S, kTokens, 2, d}, options);
  gates = at::sigmoid(at::randn({S, kTokens, 2, 2}, options));
  positions = at::arange(kTokens, at::kLong).mul(2).expand({S, kTokens}).contiguous();  // every other place
  types = at::Tensor();
  spec.variant = variant_text();
  const at::Tensor v = at::randn({S * H, kTokens, kValues}, options);
  bool any = false;
  for (const bool causal : {false, true}) {
    if (causal ? !GetParam()->may_be_causal : GetParam()->only_causal) continue;
    spec.causal = causal;
    const AttentionInput in{spec, weights, name, q, k, positions, positions, types, &gates};
    const at::Tensor z = GetParam()->output(in, v);
    if (!z.defined()) continue;
    any = true;
    const at::Tensor p = GetParam()->prepare(in)->pattern(0, S, 0, kTokens);
    const at::Tensor expected = at::bmm(p.view({S * H, kTokens, kTokens}), v);
    EXPECT_LE(distance(z, expected), 1e-12 * expected.abs().max().item<double>()) << causal;
  }
  EXPECT_TRUE(any) << "it never has one: it need not declare it";
}

// Declares nothing, so that the tests above meet the other side of each declaration, too: every key is seen
// or not on its own account, and rows sum to what they sum to.
class Sigmoid : public PreparedAttention {
 public:
  explicit Sigmoid(const AttentionInput& in) : spec_(in.spec), T_(in.q.size(1)) {
    const int64_t H = in.spec.heads;
    q_ = heads_first(in.q, H).view({-1, H, T_, in.spec.d_qk});
    k_ = heads_first(in.k, H).view({-1, H, in.k.size(1), in.spec.d_qk});
  }
  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    const at::Tensor scores = at::matmul(q_, k_.transpose(2, 3)) * spec_.scale;
    at::Tensor seen;
    masked_softmax(scores.clone(), spec_, 0, &seen);
    return at::sigmoid(seen).narrow(0, first, count).narrow(2, first_row, rows);
  }

 private:
  const AttentionSpec& spec_;
  int64_t T_;
  at::Tensor q_, k_;
};

const AttentionVariant kSigmoid{
    .name = "sigmoid_of_this_test",
    .summary = "sigmoid(scale Q K^T)",
    .row_stochastic = false,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Sigmoid>(in);
    },
    .shares = false};

INSTANTIATE_TEST_SUITE_P(NothingDeclared, AttentionContract, testing::Values(&kSigmoid),
                         [](const auto& variant) { return std::string(variant.param->name); });
INSTANTIATE_TEST_SUITE_P(Every, AttentionContract, testing::ValuesIn(attention_variants()),
                         [](const auto& variant) { return std::string(variant.param->name); });

}  // namespace
}  // namespace rankscope
