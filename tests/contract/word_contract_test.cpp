// What every word of the description promises: written and read back it is the same network, it changes what
// is computed, its frozen form is the forward pass at its input, and split arithmetic follows it or says that
// it cannot.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "operator/frozen.h"
#include "operator/split.h"
#include "parts/check.h"
#include "spec/json.h"
#include "support/tiny.h"
#include "tensors/norm.h"

namespace rankscope {
namespace {

struct Word {
  const char* name;
  std::function<void(ModelSpec&)> say;
  bool one_block_only = false;  // gains of one and biases of zero: it shows only further down
};

template <class Change>
std::function<void(ModelSpec&)> in_attention(Change change) {
  return [=](ModelSpec& s) {
    for (BlockSpec& b : s.blocks) change(b.attention());
  };
}

template <class Change>
std::function<void(ModelSpec&)> in_branches(Change change) {
  return [=](ModelSpec& s) {
    for (BlockSpec& block : s.blocks)
      for (BranchSpec& b : block.branches) change(b);
  };
}

const std::vector<Word>& words() {
  static const std::vector<Word> all{
      {"window_to_both_sides", in_attention([](AttentionSpec& a) { a.causal = false, a.window = 2; })},
      {"score_cap", in_attention([](AttentionSpec& a) { a.softcap = 0.5; })},
      {"norm_of_each_head", in_attention([](AttentionSpec& a) {
         a.qk_norm = {NormKind::rms, 1e-6};
       })},
      {"norm_of_each_head_with_its_own_gains", in_attention([](AttentionSpec& a) {
         a.qk_norm = {NormKind::layer, 1e-6};
         a.qk_norm_span = NormSpan::own_head;
       })},
      {"norm_of_all_heads", in_attention([](AttentionSpec& a) {
         a.kv_heads = 2;
         a.qk_norm = {NormKind::rms, 1e-6};
         a.qk_norm_span = NormSpan::all;
       })},
      {"slopes", in_attention([](AttentionSpec& a) {
         a.alibi = {0.5, 0.25, 0.125, 0.0625};
       })},
      {"rounded_slopes", in_attention([](AttentionSpec& a) {
         a.alibi = {0.5, 0.3, 0.125, 0.07};
         a.alibi_rounded = true;
       })},
      {"part_of_the_channels_rotated", in_attention([](AttentionSpec& a) {
         a.rotary_frequencies = {1.0, 0.1};
       })},
      {"adjacent_pairs", in_attention([](AttentionSpec& a) {
         a.rotary_frequencies = {1.0, 0.1};
         a.rotary_adjacent = true;
       })},
      {"other_frequencies_for_long_texts", in_attention([](AttentionSpec& a) {
         a.rotary_frequencies = {1.0, 0.1};
         a.rotary_long = {0.5, 0.02};
         a.rotary_context = 5;
       })},
      {"a_base_that_grows", in_attention([](AttentionSpec& a) {
         a.rotary_frequencies = {1.0, 0.1};
         a.rotary_growth = 3;
         a.rotary_context = 5;
       })},
      {"learned_sinks", in_attention([](AttentionSpec& a) { a.sinks = true; })},
      {"a_scale_per_channel", in_branches([](BranchSpec& b) { b.channel_scale = true; }), true},
      {"a_skip_behind_the_norm", in_branches([](BranchSpec& b) { b.skip_normed = true; })},
      {"norms_inside_only", in_branches([](BranchSpec& b) { b.inside = std::exchange(b.before, {}); })},
      {"no_learned_gain", in_branches([](BranchSpec& b) { b.before.gain = b.before.bias = false; }), true},
      {"one_norm_for_branches_side_by_side",
       [](ModelSpec& s) {
         for (BlockSpec& b : s.blocks) b.parallel = true, b.branches[1].norm_name = b.branches[0].norm_name;
       }},
      {"keys_and_values_through_latents", in_branches([](BranchSpec& b) {
         if (b.attention()) b.part = {"latent_attention", *b.attention(), {{"q_rank", 5}, {"kv_rank", 3}}};
       })},
      {"experts_in_groups_beside_a_shared_one", in_branches([](BranchSpec& b) {
         if (!b.mlp()) return;
         MlpSpec mlp = *b.mlp();
         mlp.width = 7;
         mlp.share_scale = 2.5;
         b.part = {"experts",
                   mlp,
                   {{"experts", 6},
                    {"groups", 3},
                    {"active_groups", 2},
                    {"sigmoid", 1},
                    {"correction", 1},
                    {"shared", 9}}};
       })},
      {"bounded_experts_with_biases", in_branches([](BranchSpec& b) {
         if (!b.mlp()) return;
         MlpSpec mlp = *b.mlp();
         mlp.activation = Activation::quick_gelu_7;
         b.part = {"experts", mlp, {{"biased", 1}, {"router_bias", 1}, {"limited", 1}}};
       })},
      {"gelu_with_eight_digits", in_branches([](BranchSpec& b) {
         if (b.mlp()) b.mlp()->activation = Activation::gelu_bloom;
       })},
      {"bounded_gelu", in_branches([](BranchSpec& b) {
         if (b.mlp()) b.mlp()->activation = Activation::quick_gelu_7;
       })}};
  return all;
}

class WordContract : public testing::TestWithParam<Word> {
 protected:
  static ModelSpec plain() { return test::tiny_spec(NormPlace::pre, 2); }
  static ModelSpec said() {
    ModelSpec s = plain();
    GetParam().say(s);
    check(s, "the test");
    return s;
  }
};

struct Network {
  explicit Network(const ModelSpec& s, const std::vector<int64_t>& lengths = {7, 4, 7})
      : spec(s),
        source(random_source(spec, 5, "float64", "cpu")),
        batch(make_batches(test::random_samples(lengths, 50), spec, 8).front()),
        x(embed(batch, spec, source->load("embed"), *source)) {}
  at::Tensor block(size_t l, const at::Tensor& input) const {
    BlockObserver nobody;
    return run_block(input, spec.blocks[l], source->load("blocks." + std::to_string(l)), batch, nobody);
  }
  at::Tensor output() const {
    return apply_norm(block(1, block(0, x)), spec.final_norm, source->load("ln_final"), "");
  }
  ModelSpec spec;
  std::unique_ptr<WeightSource> source;
  Batch batch;
  at::Tensor x;
};

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

TEST_P(WordContract, ReadsBackAsItWasWritten) {
  const ModelSpec s = said();
  EXPECT_NE(s, plain());
  EXPECT_EQ(spec_from_json(to_json(s), "here"), s);
}

TEST_P(WordContract, ChangesWhatIsComputed) {
  if (GetParam().one_block_only) GTEST_SKIP() << "it starts as one";
  EXPECT_GT(distance(Network(said()).output(), Network(plain()).output()), 1e-9);
}

// Exact at the input it was frozen at: sums of at most 48 terms in double precision.
TEST_P(WordContract, FrozenIsTheForwardPassAtItsInput) {
  const Network m(said());
  const FrozenNetwork frozen(m.spec, *m.source, m.batch);
  const at::Tensor y = m.output();
  EXPECT_LT(distance(frozen.output(), y), 1e-12);
  EXPECT_LT(distance(frozen.trunk().affine(m.x), y), 1e-12);
}

// Its own error is that of the forward pass in double precision, over two blocks.
TEST_P(WordContract, SplitArithmeticFollowsOrSaysThatItCannot) {
  const Network m(said(), {7});
  SplitTokens split(m.x);
  try {
    for (size_t l = 0; l < 2; ++l)
      split.advance(m.spec.blocks[l], m.source->load("blocks." + std::to_string(l)), m.batch);
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("split arithmetic"), std::string::npos) << e.what();
    return;
  }
  EXPECT_LT(distance(split.whole(), m.block(1, m.block(0, m.x))), 1e-11);
}

INSTANTIATE_TEST_SUITE_P(EveryWord, WordContract, testing::ValuesIn(words()),
                         [](const auto& word) { return std::string(word.param.name); });

}  // namespace
}  // namespace rankscope
