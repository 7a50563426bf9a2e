// What a block hands out, name by name: all that the list of sites promises, nothing else, and what each name
// says.
#include "model/sites.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "support/tiny.h"
#include "tensors/norm.h"
#include "tensors/operations.h"

namespace rankscope {
namespace {

using test::random_samples;
using test::tiny_spec;

// Asks for everything and keeps it; tiles are put together along their rows.
class Everything : public BlockObserver {
 public:
  bool wants(std::string_view) const override { return true; }
  void see(std::string_view site, const at::Tensor& x, const TilePlace& place) override {
    at::Tensor& kept = seen[std::string(site)];
    ASSERT_EQ(site_named(site).form == SiteForm::tiles, place.queries > 0) << site;
    if (place.queries > 0 && place.first_row > 0) {
      ASSERT_EQ(place.first_row, kept.size(2)) << site;
      kept = at::cat({kept, x}, 2);
    } else {
      kept = x.clone();
    }
  }
  std::map<std::string, at::Tensor> seen;
};

struct Ran {
  ModelSpec spec;
  std::unique_ptr<WeightSource> source;
  Weights weights;
  Batch batch;
  at::Tensor x, y;
  std::map<std::string, at::Tensor> seen;
  const at::Tensor& at(const char* site) const { return seen.at(site); }
  const BlockSpec& block() const { return spec.blocks[0]; }
};

Ran run(ModelSpec spec, int64_t length) {
  Ran r;
  spec.embedding.positions = length;
  r.source = random_source(spec, 11, "float64", "cpu");
  r.spec = std::move(spec);
  r.weights = r.source->load("blocks.0");
  r.batch = make_batches(random_samples({length}, 50), r.spec, 8).front();
  r.x = embed(r.batch, r.spec, r.source->load("embed"), *r.source);
  Everything all;
  r.y = run_block(r.x, r.block(), r.weights, r.batch, all);
  r.seen = std::move(all.seen);
  return r;
}

std::vector<ModelSpec> kinds() {
  std::vector<ModelSpec> out;
  for (const NormPlace place : {NormPlace::pre, NormPlace::post})
    for (const std::string mlp : {"mlp", "gated_mlp", "activation", ""}) {
      out.push_back(tiny_spec(place, 1));
      BlockSpec& block = out.back().blocks[0];
      block.attention().kv_heads = 2;
      if (mlp.empty())
        block.branches.pop_back();
      else
        block.mlp_branch()->part.name = mlp;
    }
  return out;
}

TEST(Sites, ABlockHandsOutWhatTheListPromisesAndNothingElse) {
  for (const ModelSpec& spec : kinds()) {
    std::set<std::string> promised, seen;
    for (const SiteInfo& site : sites())  // the others are the pass's to make
      if (site.in_block && site.present(spec, spec.blocks[0]) && site.shown_by != ShownBy::pass &&
          site.shown_by != ShownBy::output && site.made_of.empty())
        promised.emplace(site.name);
    for (const auto& [name, tensor] : run(spec, 9).seen) seen.insert(name);
    EXPECT_EQ(seen, promised) << describe(spec);
  }
}

TEST(Sites, LookingChangesNothing) {
  for (const ModelSpec& spec : kinds()) {
    const Ran r = run(spec, kWholePattern + 88);
    BlockObserver nobody;
    EXPECT_TRUE(at::equal(r.y, run_block(r.x, r.block(), r.weights, r.batch, nobody))) << describe(spec);
  }
}

// Rounding of products of at most 600 terms in double precision, with room for the growth of a softmax.
constexpr double kClose = 1e-12;

void expect_close(const at::Tensor& a, const at::Tensor& b, const char* what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_LE((a - b).abs().max().item<double>(), kClose * b.abs().max().item<double>()) << what;
}

// More tokens than an MLP takes at a time and a pattern holds whole.
TEST(Sites, EveryTensorIsWhatItsNameSays) {
  for (const ModelSpec& spec : kinds()) {
    const Ran r = run(spec, 600);
    const AttentionSpec& a = r.block().attention();
    const Weights& w = r.weights;
    const BranchSpec& first = r.block().branches[0];
    const bool pre = first.before.there();
    const BranchSpec* mlp = r.block().mlp_branch();
    const auto project = [&](const char* W, const char* b, int64_t heads) {
      return at::linear(pre ? r.at("ln1.hook_normalized") : r.x, w.get(W), w.get(b)).view({600, heads, -1});
    };
    EXPECT_TRUE(at::equal(r.at("hook_resid_pre"), r.x));
    expect_close(r.at("attn.hook_q"), project("attn.W_Q", "attn.b_Q", a.heads), "q");
    expect_close(r.at("attn.hook_k"), project("attn.W_K", "attn.b_K", 2), "k");
    expect_close(r.at("attn.hook_v"), project("attn.W_V", "attn.b_V", 2), "v");
    const auto heads_in_front = [&](const at::Tensor& t) {  // query head h reads KV head h / 2
      return t.repeat_interleave(a.heads / t.size(1), 1).transpose(0, 1);
    };
    const at::Tensor q = heads_in_front(r.at("attn.hook_q")), k = heads_in_front(r.at("attn.hook_k"));
    at::Tensor scores = at::matmul(q, k.transpose(1, 2)) * a.scale;
    const at::Tensor hidden = at::ones({600, 600}, at::kBool).triu(1);
    const at::Tensor shown = r.at("attn.hook_attn_scores")[0];
    if (a.causal) {
      EXPECT_TRUE(at::equal(shown.isinf(), hidden.expand_as(shown)));
      scores = scores.masked_fill(hidden, 0);
    }
    expect_close(shown.masked_fill(shown.isinf(), 0), scores, "scores");
    const at::Tensor pattern = r.at("attn.hook_pattern")[0];
    expect_close(pattern, at::softmax(shown, -1), "pattern");
    expect_close(r.at("attn.hook_z"),
                 at::matmul(pattern, heads_in_front(r.at("attn.hook_v"))).transpose(0, 1), "z");
    expect_close(r.at("hook_attn_out"),
                 at::linear(r.at("attn.hook_z").flatten(1), w.get("attn.W_O"), w.get("attn.b_O")),
                 "attn_out");
    if (mlp == nullptr) continue;
    const at::Tensor sum = r.x + r.at("hook_attn_out"), &mid = r.at("hook_resid_mid");
    expect_close(mid, pre ? sum : apply_norm(sum, first.behind, w, "ln1"), "mid");
    const at::Tensor out = mid + r.at("hook_mlp_out");
    expect_close(pre ? out : apply_norm(out, mlp->behind, w, "ln2"), r.y, "mlp_out");
    if (mlp->part.name == "activation") continue;
    const bool gated = mlp->part.name == "gated_mlp";
    const at::Tensor& read = pre ? r.at("ln2.hook_normalized") : mid;
    const at::Tensor in = at::linear(read, w.get("mlp.W_in"), w.get_or_none("mlp.b_in"));
    const at::Tensor gate = gated ? at::linear(read, w.get("mlp.W_gate"), w.get_or_none("mlp.b_gate")) : in;
    expect_close(r.at("mlp.hook_pre"), gate, "pre");
    const at::Tensor acted = apply_activation(gate.clone(), mlp->mlp()->activation);
    expect_close(r.at("mlp.hook_post"), gated ? acted * in : acted, "post");
    expect_close(r.at("hook_mlp_out"),
                 at::linear(r.at("mlp.hook_post"), w.get("mlp.W_out"), w.get_or_none("mlp.b_out")), "out");
  }
}

TEST(Sites, AreFoundByNameWithTheirBlockOrWithout) {
  EXPECT_EQ(site_named("attn.hook_q").name, "attn.hook_q");
  EXPECT_EQ(site_named("blocks.11.attn.hook_q").name, "attn.hook_q");
  EXPECT_EQ(within_block("blocks.7.ln1.hook_normalized"), "ln1.hook_normalized");
  for (const char* whole : {"blocks.hook_q", "blocks.3", "blocks.3x.hook_q", "ln_final.hook_normalized"})
    EXPECT_EQ(within_block(whole), whole);
}

TEST(Sites, ANameThatDoesNotExistIsAnsweredWithTheNearest) {
  for (const char* name : {"attn.hook_patern", "blocks.2.attn.hook_patern"}) try {
      site_named(name);
      FAIL() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), "there is no site \"attn.hook_patern\"");
      EXPECT_EQ(e.advice().rfind("attn.hook_pattern", 0), 0u) << e.advice();
    }
  EXPECT_THROW(site_named("blocks.0.ln_final.hook_normalized"), Error);
}

}  // namespace
}  // namespace rankscope
