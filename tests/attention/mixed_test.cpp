// What is promised of heads in groups: the sheet on Multiformer, (d).
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "attention/ceiling.h"
#include "attention/patterns.h"
#include "base/error.h"
#include "parts/program.h"
#include "spec/head_groups.h"

namespace rankscope::test {
namespace {

constexpr int64_t kWidth = 6;

struct MixedLayer {
  explicit MixedLayer(const std::string& variant, int64_t heads, int64_t tokens, int64_t samples = 1) {
    const auto options = at::TensorOptions().dtype(at::kDouble);
    spec.variant = variant;
    spec.heads = spec.kv_heads = heads;
    spec.d_qk = spec.d_v = kWidth;
    spec.scale = 0.7;
    q = at::randn({samples, tokens, heads, kWidth}, options);
    k = at::randn({samples, tokens, heads, kWidth}, options);
    v = at::randn({samples * heads, tokens, kWidth}, options);
    if (has_head_groups(spec))
      for (const char* filter : {"attn.key_filter", "attn.value_filter"})
        weights.set(filter, at::randn({heads, head_groups(spec).kernel}, options));
  }
  AttentionInput input() const { return {spec, weights, name, q, k, places(), places(), none}; }
  const at::Tensor& places() const {
    place = at::arange(q.size(1)).expand({q.size(0), q.size(1)}).contiguous();
    return place;
  }
  at::Tensor pattern() const {
    return attention_variant(spec.variant).prepare(input())->pattern(0, q.size(0), 0, q.size(1));
  }
  at::Tensor by_patterns() const { return at::bmm(pattern().flatten(0, 1), v); }
  at::Tensor by_output() const { return attention_variant(spec.variant).output(input(), v); }

  AttentionSpec spec;
  Weights weights;
  std::string name = "attn";
  at::Tensor q, k, v, none;
  mutable at::Tensor place;
};

bool of_another_part(const std::string& kind) {
  return std::any_of(parts().begin(), parts().end(), [&](const Part* part) { return part->variant == kind; });
}

TEST(MixedHeads, OfFullHeadsAloneAreSoftmaxAttention) {
  at::manual_seed(1);
  MixedLayer layer("mixed:full=4", 4, 30, 2);
  const at::Tensor mixed = layer.pattern(), z = layer.by_output();
  layer.spec.variant = "softmax";
  EXPECT_LE(largest(mixed - layer.pattern()), 1e-12);
  EXPECT_LE(largest(z - layer.by_patterns()), 1e-12);
}

TEST(MixedHeads, ALocalHeadSeesItsBlockAndThoseBesideIt) {
  at::manual_seed(2);
  constexpr int64_t T = 200, b = 21;  // a window of 64 has three blocks of 21
  const at::Tensor p = MixedLayer("mixed:local=1,window=64", 1, T).pattern()[0][0];
  EXPECT_LE(largest(p.sum(-1) - 1), 1e-12);
  for (int64_t i = 0; i < T; ++i) {
    const int64_t r = i % b, from = std::max<int64_t>(0, i - b - r), to = std::min(T, i + 2 * b - r);
    ASSERT_GT(p[i].narrow(0, from, to - from).min().item<double>(), 0.0) << i;
    ASSERT_EQ((p[i] != 0).sum().item<int64_t>(), to - from) << i;
    if (i >= b && i < T - 2 * b) {
      ASSERT_EQ(to - from, 63);
    }
  }
  EXPECT_EQ(rank_of(p, 1e-12), T);  // a band of blocks has no lower ceiling
}

TEST(MixedHeads, LocalHeadsBlockByBlockAreTheirPatterns) {
  at::manual_seed(3);
  for (const bool causal : {false, true})
    for (const int64_t tokens : {1, 5, 9, 24, 25, 40}) {
      MixedLayer layer("mixed:local=2,compressed=1,full=1,window=9", 4, tokens, 3);
      layer.spec.causal = causal;
      EXPECT_LE(largest(layer.by_output() - layer.by_patterns()), 1e-12) << tokens << causal;
    }
}

// The whole matrix would take 34 GB.
TEST(MixedHeads, LocalHeadsCostTheirWindowAndNotTheSquareOfTheText) {
  at::manual_seed(9);
  constexpr int64_t T = 65536, b = 8, i = 40003;  // the fourth of its block
  const MixedLayer layer("mixed:local=1,window=24", 1, T);
  const at::Tensor z = layer.by_output();
  const at::Tensor keys = layer.k[0].select(1, 0).narrow(0, i - 3 - b, 3 * b),
                   scores = keys.matmul(layer.q[0][i][0]) * layer.spec.scale;
  const at::Tensor expected = at::softmax(scores, 0).matmul(layer.v[0].narrow(0, i - 3 - b, 3 * b));
  EXPECT_LE(largest(z[0][i] - expected), 1e-14);
}

TEST(MixedHeads, CompressedHeadsHaveAsManyKeysAsTheFormulaSays) {
  const auto keys = [](int64_t tokens, int64_t kernel, int64_t stride) {
    HeadGroups g;
    g.kernel = kernel;
    g.stride = stride;
    return g.compressed_keys(tokens);
  };
  EXPECT_EQ(keys(64, 5, 2), 32);
  EXPECT_EQ(keys(64, 7, 3), 20);
  EXPECT_EQ(keys(64, 9, 5), 12);
  EXPECT_EQ(keys(250, 5, 2), 125);
  EXPECT_EQ(keys(250, 7, 3), 82);
  EXPECT_EQ(keys(250, 9, 5), 50);
  for (const int64_t tokens : {1, 2, 3}) EXPECT_GE(keys(tokens, 5, 2), 1);  // the original has none of two
}

TEST(MixedHeads, TheRankOfACompressedHeadIsTheNumberOfItsKeys) {
  at::manual_seed(4);
  for (const auto& [kernel, stride, rank] :
       {std::tuple<int, int, int64_t>{5, 2, 24}, {7, 3, 15}, {9, 5, 9}}) {
    const std::string variant = fmt::format("mixed:compressed=2,kernel={},stride={}", kernel, stride);
    const MixedLayer layer(variant, 2, 48);
    const at::Tensor p = layer.pattern();
    for (int64_t h = 0; h < 2; ++h) {
      EXPECT_EQ(rank_of(p[0][h], 1e-10), rank) << variant;
      EXPECT_EQ(rank_ceiling(layer.spec, h, 48), rank) << variant;
    }
  }
}

TEST(MixedHeads, EveryHeadHasACeilingOfItsOwn) {
  AttentionSpec spec;
  spec.variant = "mixed:full=1,local=1,compressed=1,fastmax=1,linear=1";
  spec.heads = spec.kv_heads = 5;
  spec.d_qk = 4;
  EXPECT_EQ(rank_ceiling(spec, 0, 100), 100);
  EXPECT_EQ(rank_ceiling(spec, 1, 100), 100);
  EXPECT_EQ(rank_ceiling(spec, 2, 100), 50);
  EXPECT_EQ(rank_ceiling(spec, 3, 100), 15);  // C(4 + 2, 2)
  EXPECT_EQ(rank_ceiling(spec, 4, 100), 4);
  EXPECT_EQ(attention_variant("mixed").rank_ceiling(spec, 100), 100);
  spec.variant = "softmax";
  EXPECT_FALSE(rank_ceiling(spec, 0, 100));
}

// Rows sum to one where those of every group do.
TEST(MixedHeads, RowsSumToOneUnlessAGroupsDoNot) {
  for (const auto& [variant, sums] : {std::pair<const char*, bool>{"mixed:full=2,local=2,window=9", true},
                                      {"mixed:full=3,sinkhorn=1", true},
                                      {"mixed:full=3,sigmoid=1", false},
                                      {"mixed:full=3,linear=1", false},
                                      {"mixed:full=3,compressed=1", false}}) {
    at::manual_seed(5);
    const MixedLayer layer(variant, 4, 20);
    EXPECT_EQ(rows_sum_to_one(layer.spec), sums) << variant;
    EXPECT_EQ(largest(layer.pattern().sum(-1) - 1) < 1e-12, sums) << variant;
  }
}

// Loops over single numbers: filters slide, softmax, filters slide again.
TEST(MixedHeads, ACompressedHeadIsWhatLoopsSay) {
  at::manual_seed(5);
  constexpr int64_t T = 11, kernel = 3, stride = 2, before = 1;
  const MixedLayer layer("mixed:compressed=1,kernel=3,stride=2", 1, T);
  const at::Tensor p = layer.pattern()[0][0];
  const auto f = layer.weights.get("attn.key_filter"), g = layer.weights.get("attn.value_filter");
  const int64_t keys = head_groups(layer.spec).compressed_keys(T);
  const auto each = [&](int64_t j, const auto& use) {
    for (int64_t t = 0; t < kernel; ++t)
      if (const int64_t at = j * stride - before + t; at >= 0 && at < T) use(t, at);
  };
  for (int64_t i = 0; i < T; ++i) {
    std::vector<double> weight(static_cast<size_t>(keys), 0.0), row(T, 0.0);
    double sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      double score = 0;
      each(j, [&](int64_t t, int64_t at) {
        score += f[0][t].item<double>() * (layer.q[0][i][0] * layer.k[0][at][0]).sum().item<double>();
      });
      sum += weight[static_cast<size_t>(j)] = std::exp(layer.spec.scale * score);
    }
    for (int64_t j = 0; j < keys; ++j)
      each(j, [&](int64_t t, int64_t at) {
        row[static_cast<size_t>(at)] += weight[static_cast<size_t>(j)] / sum * g[0][t].item<double>();
      });
    for (int64_t at = 0; at < T; ++at)
      EXPECT_NEAR(p[i][at].item<double>(), row[static_cast<size_t>(at)], 1e-12);
  }
}

TEST(MixedHeads, HeadsMayBePermutedWithinTheirGroups) {
  at::manual_seed(6);
  MixedLayer layer("mixed:full=2,local=2,compressed=2,window=9", 6, 20);
  const at::Tensor W_O = at::randn({6, kWidth, 8}, at::kDouble);
  const auto written = [&](const at::Tensor& maps) {
    return at::bmm(layer.by_output(), maps).sum(0);  // [T, 8]
  };
  const at::Tensor y = written(W_O), order = at::tensor({1, 0, 3, 2, 5, 4}, at::kLong);
  layer.q = layer.q.index_select(2, order);
  layer.k = layer.k.index_select(2, order);
  layer.v = layer.v.index_select(0, order);
  for (const char* filter : {"attn.key_filter", "attn.value_filter"})
    layer.weights.set(filter, layer.weights.get(filter).index_select(0, order));
  EXPECT_LE(largest(written(W_O.index_select(0, order)) - y), 1e-12);
}

TEST(MixedHeads, AHeadAloneIsThatOfItsLayer) {
  at::manual_seed(7);
  const MixedLayer layer("mixed:full=1,local=1,compressed=2,sigmoid=1,window=9", 5, 20);
  const at::Tensor all = layer.pattern();
  for (int64_t h = 0; h < 5; ++h) {
    MixedLayer one(variant_of_head(layer.spec, h), 1, 20);
    one.q = layer.q.narrow(2, h, 1);
    one.k = layer.k.narrow(2, h, 1);
    for (const char* filter : {"attn.key_filter", "attn.value_filter"})
      one.weights.set(filter, layer.weights.get(filter).narrow(0, h, 1));
    EXPECT_LE(largest(one.pattern()[0][0] - all[0][h]), 1e-14) << one.spec.variant;
  }
}

// Central differences along a random direction, as in the contract of variants.
TEST(MixedHeads, EveryKindOfHeadHasItsGradient) {
  for (const std::string& kind : head_group_kinds()) {
    if (of_another_part(kind)) continue;
    at::manual_seed(8);
    MixedLayer layer(fmt::format("mixed:{}=2,window=6", kind), 2, 12);
    std::vector<at::Tensor*> moved{&layer.q, &layer.k};
    at::Tensor filters[] = {layer.weights.get("attn.key_filter"), layer.weights.get("attn.value_filter")};
    moved.push_back(&filters[0]);
    moved.push_back(&filters[1]);
    const at::Tensor weight = at::randn({1, 2, 12, 12}, at::kDouble);
    const auto value = [&] {
      layer.weights.set("attn.key_filter", filters[0]);
      layer.weights.set("attn.value_filter", filters[1]);
      return (layer.pattern() * weight).sum();
    };
    std::vector<at::Tensor> at_point, direction;
    for (at::Tensor* x : moved) {
      at_point.push_back(x->clone());
      direction.push_back(at::randn_like(*x));
    }
    const auto moved_by = [&](double h) {
      for (size_t i = 0; i < moved.size(); ++i) *moved[i] = at_point[i] + h * direction[i];
      return value().item<double>();
    };
    constexpr double h = 1e-5;
    const double difference = (moved_by(h) - moved_by(-h)) / (2 * h);
    std::vector<at::Tensor> leaves;
    for (size_t i = 0; i < moved.size(); ++i)
      leaves.push_back(*moved[i] = at_point[i].clone().requires_grad_(true));
    const at::Tensor sum = value();
    double slope = 0;
    if (sum.requires_grad()) {
      const auto found = torch::autograd::grad({sum}, leaves, {}, {}, false, /*allow_unused=*/true);
      for (size_t i = 0; i < found.size(); ++i)
        if (found[i].defined()) slope += (found[i] * direction[i]).sum().item<double>();
    }
    EXPECT_NEAR(slope, difference, 1e-6 * (1 + std::abs(slope))) << kind;
    if (kind != "hard") {
      EXPECT_NE(slope, 0.0) << kind;
    }
  }
}

TEST(MixedHeads, CostWhatTheirKeysCost) {
  AttentionSpec spec;
  spec.heads = spec.kv_heads = 4;
  const auto products = [&](const char* variant) {
    spec.variant = variant;
    return products_of_heads(spec, 256, 256);
  };
  EXPECT_EQ(products("softmax"), 4 * 256 * 256);
  EXPECT_EQ(products("mixed:full=4"), 4 * 256 * 256);
  EXPECT_EQ(products("mixed:local=4,window=64"), 4 * 256 * 63);
  // 128 keys, each of which is a product of five tokens and a filter
  EXPECT_EQ(products("mixed:full=3,compressed=1"), 3 * 256 * 256 + (256 + 5) * 128);
  spec.variant = "mixed:local=4,window=64";
  EXPECT_EQ(products_of_heads(spec, 10, 10), 4 * 10 * 10);  // no more than there are
}

TEST(MixedHeads, RefuseWhatDoesNotFit) {
  AttentionSpec spec;
  spec.heads = spec.kv_heads = 4;
  for (const char* variant : {"mixed:full=3", "mixed:local=5", "mixed:local=-1", "mixed:loca=4",
                              "mixed:full=4,window=2", "mixed:full=4,stride=0", "mixed:full=4,kernel=1025",
                              "mixed:full=1.5,local=2.5", "mixed:full=4,kernel=x"}) {
    spec.variant = variant;
    EXPECT_THROW(head_groups(spec), Error) << variant;
  }
  spec.variant = "mixed:full=4";
  EXPECT_NO_THROW(head_groups(spec));
  spec.sinks = true;
  EXPECT_THROW(head_groups(spec), Error);
}

TEST(MixedHeads, TakeEveryKindWithoutParametersOfItsOwn) {
  EXPECT_EQ(head_group_kinds().size(), attention_variants().size() + 1);  // full is softmax
  for (const std::string& kind : head_group_kinds()) {
    BranchSpec branch{.name = "attn", .norm_name = "ln1"};
    AttentionSpec a;
    a.variant = fmt::format("mixed:{}=1", kind);
    branch.part = {.name = "mixed_attention", .words = a};
    if (of_another_part(kind))
      EXPECT_THROW(program_of(branch, 8), Error) << kind;
    else
      EXPECT_NO_THROW(program_of(branch, 8)) << kind;
  }
  EXPECT_TRUE(of_another_part("delta"));
}

}  // namespace
}  // namespace rankscope::test
