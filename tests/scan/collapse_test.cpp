// rankscope collapse from the inside: its networks, its curves beside the published ones, what it says.
#include "collapse/collapse.h"
#include "scan/scan.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/load.h"
#include "collapse/parts.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "pass/input.h"
#include "pass/shapes.h"
#include "spec/edit.h"
#include "support/reference.h"
#include "support/source_tree.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

TEST(CollapseVariants, AreTwelveDifferentNetworks) {
  const ModelSpec spec = test::tiny_spec();
  const auto variants = collapse_variants(spec, "factorial");
  ASSERT_EQ(variants.size(), 12u);
  EXPECT_EQ(variants.front().name, "full");
  std::set<std::string> names, specs;
  for (const auto& v : variants) {
    names.insert(v.name);
    specs.insert(describe(v.spec));
    EXPECT_EQ(v.spec.blocks[0].branches[0].skip, v.attention_skip);
    EXPECT_EQ(v.spec.blocks[0].branches[0].behind.acts(), v.norm);
    const BranchSpec* mlp = v.spec.blocks[0].mlp_branch();
    EXPECT_EQ(mlp == nullptr ? 0 : mlp->skip ? 2 : 1, v.mlp);
  }
  EXPECT_EQ(names.size(), 12u);
  EXPECT_EQ(specs.size(), 12u);
  EXPECT_EQ(collapse_variants(spec, "factorial", {.positions = true}).size(), 24u);
  EXPECT_EQ(collapse_variants(spec, "factorial", {.frozen_norm = true}).size(), 18u);
  EXPECT_THROW(collapse_variants(spec, "papers"), Error);
  EXPECT_THROW(collapse_variants(spec, "paper", {.positions = true}), Error);
}

TEST(CollapseVariants, APartThatIsGoneMakesNoNetworkTwice) {
  const auto variants = collapse_variants(without(test::tiny_spec(), "norm"), "factorial");
  ASSERT_EQ(variants.size(), 6u);
  for (const auto& v : variants) EXPECT_TRUE(v.norm) << v.name;  // no pair differs in it, so nothing is said
}

TEST(CollapseVariants, OfParallelBlocksTakeTheOneSkipOut) {
  ModelSpec spec = test::tiny_spec(NormPlace::pre);
  for (BlockSpec& b : spec.blocks) b.parallel = true;
  std::set<std::string> names, specs;
  for (const auto& v : collapse_variants(spec, "factorial")) {
    names.insert(v.name);
    specs.insert(describe(v.spec));
  }
  EXPECT_EQ(names, (std::set<std::string>{"full", "-mlp", "-norm", "-mlp+norm", "-skip", "-skip+mlp",
                                          "-skip+norm", "-skip+mlp+norm"}));
  EXPECT_EQ(specs.size(), names.size());
  EXPECT_FALSE(collapse_variants(spec, "paper")[1].spec.blocks[0].branches[0].skip);
}

TEST(CollapseVariants, HoldStatisticsWithoutAnEdit) {
  const ModelSpec spec = test::tiny_spec();
  int held = 0;
  for (const auto& v : collapse_variants(spec, "factorial", {.frozen_norm = true})) {
    EXPECT_EQ(v.held_norms, v.name.ends_with("norm-statistics")) << v.name;
    EXPECT_EQ(v.spec.blocks[0].branches[0].behind == spec.blocks[0].branches[0].behind, v.norm) << v.name;
    held += v.held_norms;
  }
  EXPECT_EQ(held, 6);
}

TEST(CollapseVariants, FollowThePublishedSurgery) {
  const auto of = [](const char* shape, const char* preset, size_t i) {
    return collapse_variants(shape_spec(shape), preset)[i].spec.blocks[0];
  };
  for (const char* shape : {"bert-base", "xlnet-base"})
    for (const char* preset : {"paper", "published"}) {
      EXPECT_EQ(of(shape, preset, 0), shape_spec(shape).blocks[0]);
      EXPECT_FALSE(of(shape, preset, 1).branches[0].skip);  // SAN
      EXPECT_EQ(of(shape, preset, 1).mlp_branch(), nullptr);
      EXPECT_EQ(of(shape, preset, 1).branches[0].behind.kind, NormKind::layer);  // the norm stays
      EXPECT_FALSE(of(shape, preset, 2).branches[0].skip);                       // SAN+MLP
      EXPECT_TRUE(of(shape, preset, 2).mlp_branch()->skip);
      EXPECT_TRUE(of(shape, preset, 3).branches[0].skip);  // SAN+skip
      EXPECT_EQ(of(shape, preset, 3).mlp_branch(), nullptr);
    }
  EXPECT_EQ(of("albert-base", "paper", 1).mlp_branch(), nullptr);
  EXPECT_EQ(of("albert-base", "published", 1).mlp_branch()->part.name, "activation");
  EXPECT_TRUE(of("albert-base", "published", 1).mlp_branch()->skip);
}

TEST(Shapes, AreKnownByName) {
  for (const std::string& name : shape_names()) EXPECT_GT(shape_spec(name).depth(), 0) << name;
  EXPECT_EQ(shape_spec("bert-base").width, 768);
  // A folder of that name beside us is another thing.
  const std::filesystem::path here = std::filesystem::current_path(),
                              beside = std::filesystem::path(testing::TempDir()) /
                                       fmt::format("shapes-{}", ::getpid());
  std::filesystem::create_directories(beside / "gpt2");
  std::filesystem::current_path(beside);
  EXPECT_EQ(shape_spec("gpt2").width, 768);
  EXPECT_THROW(shape_spec("./gpt2"), Error);
  std::filesystem::current_path(here);
  std::filesystem::remove_all(beside);
  EXPECT_EQ(shape_spec("albert-base").stored_blocks, 1);
  try {
    shape_spec("bert-bsae");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.advice().find("bert-base"), std::string::npos);
  }
}

TEST(Published, CurvesAreThere) {
  for (const char* model : {"bert", "albert", "xlnet"})
    for (const char* weights : {"init", "pretrained"})
      for (const char* variant : {"SAN", "SAN+MLP", "SAN+skip", "transformer"}) {
        const auto curve = published_collapse(model, weights, variant);
        ASSERT_EQ(curve.size(), 13u) << model << weights << variant;
        EXPECT_GT(curve.front().value, 0.5);
      }
  EXPECT_EQ(published_collapse("bert", "init", "SAN")[1].value, 0.0176);
  EXPECT_TRUE(published_collapse("gpt2", "init", "SAN").empty());
}

// Texts repeat their words. Without repetition the mean token of XLNet, which has no positions at its input,
// would be too small and every residual too large.
std::vector<Sample> zipf_samples(const ModelSpec& spec, uint64_t seed) {
  ScanRequest r;
  r.random_tokens = r.zipf = true;
  r.samples = 2;
  r.seed = seed;
  return read_input(r, spec).samples;
}

// SAN and SAN+skip over the first three layers of a published shape, network by network.
using Curves = std::map<std::string, std::vector<std::vector<double>>>;  // variant, depth, network
Curves init_curves(const std::string& shape) {
  ModelSpec spec = shape_spec(shape);
  spec.blocks.resize(3);
  if (spec.stored_blocks > 1) spec.stored_blocks = 3;
  std::vector<CollapseVariant> variants;
  for (CollapseVariant& v : collapse_variants(spec, "published"))
    if (v.name == "SAN" || v.name == "SAN+skip") variants.push_back(std::move(v));
  Curves out;
  for (uint64_t network = 1; network <= 5; ++network) {
    // Parameters are functions of their names: the MLP these variants lack need not be drawn.
    const auto source = random_source(variants.front().spec, network, "float64", "cpu");
    const auto batches = make_batches(zipf_samples(spec, network), spec, 1);
    ResultTable table;
    split_curves(variants, *source, batches, table, {});
    for (const CollapseVariant& v : variants) {
      auto& curve = out[v.name];
      curve.resize(4);
      for (int d = 0; d < 4; ++d)
        curve[static_cast<size_t>(d)].push_back(
            table.find(v.name, "residual_l1inf_rel", collapse_layer(d), -1, "all", collapse_site(d))->value);
    }
  }
  return out;
}

class PublishedInit : public testing::TestWithParam<const char*> {};

double deviation(const std::vector<double>& x) {
  return arithmetic_mean(x).stderr_ * std::sqrt(static_cast<double>(x.size()));
}

// The published curves are one network each, drawn without a seed. What stands high is held to the scatter of
// networks, ours and theirs, and of their texts (collapse/parts.h); what falls by the cube, and with it
// by the cube of what their texts and ours differ in, to a factor of two; below 5e-7 theirs is rounding.
TEST_P(PublishedInit, CurvesAreReproduced) {
  const std::string shape = GetParam(), model = shape.substr(0, shape.find('-'));
  PublishedTally tally;
  tally.theirs_sd = published_networks_sd(model);
  for (const auto& [variant, curve] : init_curves(shape)) {
    const auto published = published_collapse(model, "init", variant);
    for (size_t d = 0; d < 4; ++d) {
      const PublishedPoint& p = published[d];
      if (!(p.value > kPublishedFloor)) continue;
      const double mean = arithmetic_mean(curve[d]).value;
      RecordProperty(variant + std::to_string(d), std::to_string(mean / p.value));
      if (p.value > 0.1) {
        EXPECT_NEAR(mean, p.value, tally.reach(p, deviation(curve[d])))
            << shape << " " << variant << " " << d;
      } else {
        EXPECT_LT(std::fabs(std::log2(mean / p.value)), 1.0)
            << shape << " " << variant << " " << d << ": " << mean << " against " << p.value;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PublishedInit, testing::Values("bert-base", "albert-base", "xlnet-base"),
                         [](const auto& shape) {
                           return std::string(shape.param).substr(0, std::string(shape.param).find('-'));
                         });

CollapseRequest on_fixture(const std::string& arithmetic) {
  CollapseRequest r;
  r.scan.model = test::fixtures() / "models" / "bert";
  r.scan.random_tokens = true;
  r.scan.samples = 3;
  r.scan.max_length = 11;
  r.arithmetic = arithmetic;
  return r;
}

TEST(Collapse, SplitAndFloat64AgreeWhereBothResolve) {
  CollapseRequest request = on_fixture("float64");
  request.preset = "paper";
  const ScanResult plain = measure_collapse(request, {});
  const ScanResult split = measure_collapse(on_fixture("split"), {});
  int compared = 0;
  for (const char* variant : {"SAN", "SAN+MLP", "SAN+skip", "transformer"})
    for (int d = 0; d <= 3; ++d) {
      const auto at = [&](const ScanResult& r) {
        return r.table.find(variant, "residual_l1inf_rel", collapse_layer(d), -1, "all", collapse_site(d))
            ->value;
      };
      EXPECT_NEAR(at(split), at(plain), 1e-9 * at(plain)) << variant << d;
      ++compared;
    }
  EXPECT_EQ(compared, 16);
}

TEST(Collapse, HeldStatisticsChangeNothingInTheWholeNetwork) {
  for (const char* fixture : {"bert", "gpt2", "llama"}) {
    CollapseRequest request = on_fixture("float64");
    request.scan.model = test::fixtures() / "models" / fixture;
    request.frozen_norm = true;
    request.theory = false;
    const ScanResult r = measure_collapse(request, {});
    const auto at = [&](const char* variant, int d) {
      return r.table.find(variant, "residual_l1inf_rel", collapse_layer(d), -1, "all", collapse_site(d))
          ->value;
    };
    const int depth = static_cast<int>(r.spec.depth());
    for (int d = 0; d <= depth; ++d)
      EXPECT_NEAR(at("-norm-statistics", d), at("full", d), 1e-12) << fixture << d;
    EXPECT_LT(r.table.find("-norm-statistics", "output_kl", -1)->value, 1e-12) << fixture;
    EXPECT_GT(std::fabs(at("-attention-skip+norm-statistics", depth) / at("-attention-skip", depth) - 1),
              1e-3)
        << fixture;
  }
}

// One post-norm block by hand: attention alone, divided by what the whole network divides by.
TEST(Collapse, HeldStatisticsAreTheWholeNetworks) {
  CollapseRequest request = on_fixture("float64");
  request.frozen_norm = true;
  request.theory = false;
  request.scan.samples = 1;
  const ScanResult r = measure_collapse(request, {});
  const Checkpoint checkpoint(request.scan.model);
  const auto source = checkpoint_source(checkpoint, "float64", "cpu");
  const ModelSpec& spec = checkpoint.spec();
  const Batch batch = make_batches(read_input(request.scan, spec).samples, spec, 1).front();
  const Weights w = source->load("blocks.0");
  const at::Tensor x = embed(batch, spec, source->load("embed"), *source);
  BlockObserver nobody;
  BlockSpec alone = spec.blocks[0];  // what attention writes, nothing around it
  alone.branches.resize(1);
  alone.branches[0].skip = false;
  alone.branches[0].behind = {};
  const at::Tensor a = run_block(x, alone, w, batch, nobody);
  const at::Tensor whole = x + a;
  const at::Tensor sigma =
      ((whole - whole.mean(1, true)).square().mean(1, true) + spec.blocks[0].branches[0].behind.epsilon)
          .sqrt();
  const at::Tensor y = (a - a.mean(1, true)) / sigma * w.get("ln1.w") + w.get("ln1.b");
  EXPECT_NEAR(
      r.table.find("-attention-skip+mlp+norm-statistics", "residual_l1inf", 0, -1, "all", collapse_site(1))
          ->value,
      reference::composite(reference::centered(y)), 1e-10);
}

// A model folder like `fixture` whose tensors with this word in their name are zero.
std::filesystem::path with_zeros(const std::string& fixture, const std::string& word) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("{}-zero-{}", fixture, ::getpid());
  std::filesystem::create_directories(folder);
  const auto from = test::fixtures() / "models" / fixture;
  write_file(folder / "config.json", read_file(from / "config.json"));
  std::string bytes = read_file(from / "model.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const Json tensors = Json::parse(bytes.substr(sizeof header, header));
  for (const auto& [name, tensor] : tensors.items()) {
    if (name.find(word) == std::string::npos) continue;
    const auto first = tensor.at("data_offsets").at(0).get<size_t>(),
               end = tensor.at("data_offsets").at(1).get<size_t>();
    std::memset(bytes.data() + sizeof header + header + first, 0, end - first);
  }
  write_file(folder / "model.safetensors", bytes);
  return folder;
}

// Attention and MLP write nothing, so that without the skip every token is zero: that is no rounding floor.
TEST(Collapse, ASkipThatHoldsTokensUpAgainstZeroKeepsThemApart) {
  CollapseRequest request = on_fixture("float32");
  request.theory = false;
  request.scan.model = with_zeros("gpt2", "c_proj");
  const ScanResult r = measure_collapse(request, {});
  std::filesystem::remove_all(request.scan.model);
  const Finding& skip = r.verdict.front();
  EXPECT_TRUE(skip.known);
  EXPECT_TRUE(skip.sentence.starts_with("the attention skip keeps tokens apart: ")) << skip.sentence;
  EXPECT_NE(skip.sentence.find("from the rounding floor (2e-07) to "), std::string::npos) << skip.sentence;
}

// Two networks that differ in their norms alone, and what is said of these.
class CollapsePair : public testing::Test {
 protected:
  CollapsePair() {
    variants_ = {{"full", spec_}, {"-norm", spec_, true, false}};
    add("full", "residual_l1inf_rel", spec_.depth(), 0.6);
  }
  void add(const std::string& variant, const char* metric, int64_t depth, double value) {
    const int d = static_cast<int>(depth);
    table_.rows.push_back(
        {variant, collapse_site(d), collapse_layer(d), -1, metric, value, 0.01, 3, d, "all"});
  }
  std::string said_of_the_norm() const {
    std::vector<Finding> verdict;
    who_holds_the_rank_up(spec_, variants_, {"float32", false, 1e-6}, table_, verdict);
    return verdict.at(0).sentence;  // of the others no two differ
  }
  const ModelSpec spec_ = test::tiny_spec();
  std::vector<CollapseVariant> variants_;
  ResultTable table_;
};

TEST_F(CollapsePair, IsOfSoManyTextsAndOfTheRelativeResidual) {
  add("-norm", "residual_l1inf_rel", spec_.depth(), 0.06);
  EXPECT_TRUE(said_of_the_norm().starts_with(
      "the norm keeps tokens apart: the last relative residual times 10 (median of 1 pairs that differ in it "
      "alone, on 3 texts; thresholds 0.5 and 2)"))
      << said_of_the_norm();
}

// A geometric mean is taken down by one text of three that collapses.
TEST_F(CollapsePair, SaysInHowManyTextsItIsSo) {
  add("-norm", "residual_l1inf_rel", spec_.depth(), 0.06);
  const std::string site = collapse_site(static_cast<int>(spec_.depth()));
  for (int64_t text = 0; text < 3; ++text)
    for (const char* variant : {"full", "-norm"})
      table_.samples.push_back({variant, site, -1, -1, "residual_l1inf_rel", "all", text,
                                variant[0] == 'f' || text > 0 ? 0.6 : 6e-4});
  const std::string few = said_of_the_norm();
  EXPECT_TRUE(few.starts_with("not known whether the norm keeps tokens apart: ")) << few;
  EXPECT_NE(few.find("thresholds 0.5 and 2; so in 1 of 3 texts of the pair in the middle)"),
            std::string::npos)
      << few;
}

TEST_F(CollapsePair, TokensThatShrankBelowWhatFloatsHoldAreNotAlike) {
  add("-norm", "residual_l1inf", spec_.depth(), 0);
  EXPECT_NE(said_of_the_norm().find("from the rounding floor"), std::string::npos) << said_of_the_norm();
  add("-norm", "residual_l1inf", 0, 1);
  EXPECT_NE(said_of_the_norm().find("from the rounding floor"), std::string::npos) << said_of_the_norm();
  add("-norm", "residual_l1inf", 1, 1e-25);
  EXPECT_EQ(said_of_the_norm(),
            "not known whether the norm keeps tokens apart: of the pairs that differ in it alone, all have a "
            "network whose numbers float32 does not hold to the end (--arithmetic float64 may)");
}

TEST(CollapseNetworks, AreAveragedAndTheirScatterKept) {
  // Two networks, two texts: 1, 3 and 5, 7.
  std::vector<ResultTable> tables(2);
  for (size_t k = 0; k < 2; ++k) {
    const double first = 1 + 4 * static_cast<double>(k);
    tables[k].rows.push_back({"SAN", collapse_site(1), 0, -1, "residual_l1inf_rel",
                              std::sqrt(first * (first + 2)), 0.1, 2, 1, "all"});
    tables[k].rows.push_back({"SAN", "unembed.hook_out", -1, -1, "output_kl", first, 0.1, 2, 1, "all"});
    for (int64_t text = 0; text < 2; ++text)
      tables[k].samples.push_back({"SAN", collapse_site(1), 0, -1, "residual_l1inf_rel", "all", text,
                                   first + 2 * static_cast<double>(text)});
  }
  const ResultTable all = over_networks(tables, 2);
  ASSERT_EQ(all.rows.size(), 2u);
  EXPECT_NEAR(all.rows[0].value, std::pow(1.0 * 3 * 5 * 7, 0.25), 1e-12);  // geometric, as the lens says
  EXPECT_NEAR(all.rows[1].value, 3.0, 1e-12);
  EXPECT_EQ(all.rows[0].n, 2);
  ASSERT_EQ(all.samples.size(), 4u);
  EXPECT_EQ(all.samples[3].sample, 3);
  const Spread s = spread_of(all, "SAN", 1, 2);
  EXPECT_NEAR(s.mean.value, 4.0, 1e-12);
  EXPECT_EQ(s.draws, 2);
  EXPECT_NEAR(s.texts_sd, std::sqrt(2.0), 1e-12);     // of 1, 3 and of 5, 7
  EXPECT_NEAR(s.networks_sd, std::sqrt(8.0), 1e-12);  // of 2 and 6
  EXPECT_NEAR(s.mean.stderr_, 2.0, 1e-12);
  const Spread alone = spread_of(tables[0], "SAN", 1, 2);
  EXPECT_EQ(alone.draws, 2);
  EXPECT_TRUE(std::isnan(alone.networks_sd));
  EXPECT_NEAR(alone.mean.stderr_, 1.0, 1e-12);
}

TEST(CollapseNetworks, CountWhatIsWithinReach) {
  PublishedTally tally;
  tally.add("SAN 0", {0.6, 0.01}, 0.62, 0.01);    // twice sqrt(2) 0.01
  tally.add("SAN 1", {0.02, 0.01}, 0.03, 0.001);  // fallen: only networks scatter
  tally.add("SAN 2", {0.02, 0.01}, 0.0215, 0.001);
  EXPECT_EQ(tally.cells, 3);
  EXPECT_EQ(tally.inside, 2);
  EXPECT_EQ(tally.outside, std::vector<std::string>{"SAN 1 (1.50 times)"});
}

TEST(Collapse, SeveralNetworksNeedAShape) {
  CollapseRequest request = on_fixture("float32");
  request.networks = 2;
  EXPECT_THROW(measure_collapse(request, {}), Error);
}

TEST(Collapse, NumbersOfNetworksThatCannotBeAreRefused) {
  for (const int64_t networks : {int64_t{0}, int64_t{-1}, kMostNetworks + 1}) {
    CollapseRequest request;
    request.init = "bert-base";
    request.networks = networks;
    try {
      measure_collapse(request, {});
      FAIL() << networks;
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), fmt::format("--networks should be from 1 to 1000, not {}", networks));
    }
  }
}

TEST(Collapse, SharedStepsGiveWhatEachVariantGivesAlone) {
  // Alone, a variant shares nothing.
  const ScanResult together = measure_collapse(on_fixture("float64"), {});
  ScanRequest alone = on_fixture("float64").scan;
  alone.dtype = "float64";
  alone.lenses = {"residual"};
  for (const char* parts : {"attention-skip", "mlp-skip+norm", "attention-skip+mlp", "norm"}) {
    alone.off = {parts};
    const ScanResult one = scan(alone, {});
    for (int d = 0; d <= 3; ++d) {
      const auto at = [&](const ScanResult& r) {
        return r.table
            .find(std::string("-") + parts, "residual_l1inf_rel", collapse_layer(d), -1, "all",
                  collapse_site(d))
            ->value;
      };
      EXPECT_NEAR(at(together), at(one), 1e-12 * at(one)) << parts << d;
    }
  }
}

TEST(Collapse, SaysWhoHoldsTheRankUpAndWhatTheBoundIsWorth) {
  const ScanResult r = measure_collapse(on_fixture("float32"), {});
  std::set<std::string> topics;
  for (const Finding& f : r.verdict) topics.insert(f.topic);
  EXPECT_EQ(topics, (std::set<std::string>{"support", "theory"}));
  // Numbers that are quoted stand in the table, and are read where there is something to read. They come back
  // from logarithms of at most 7 in size, whose rounding is 7 eps/2, times ln 10: 8 eps and one more.
  const double rounding = 9 * std::numeric_limits<double>::epsilon();
  for (const Finding& f : r.verdict) {
    if (f.topic != "support" || !f.known) continue;
    EXPECT_GT(std::max(f.value, f.baseline), 10 * 0x1p-22) << f.sentence;
    for (const double quoted : {f.value, f.baseline})
      EXPECT_TRUE(std::ranges::any_of(r.table.rows, [&](const Row& row) {
        return (row.metric == "residual_l1inf_rel" || row.metric == "noise_floor") &&
               std::abs(row.value - quoted) <= rounding * quoted;
      })) << f.sentence;
    EXPECT_NE(f.sentence.find("thresholds"), std::string::npos) << f.sentence;
  }
  const Row* slack = r.table.find("theory", "bound_slack_log10", 0);
  ASSERT_NE(slack, nullptr);
  EXPECT_GT(slack->value, 0.0);
  // In front of the first layer nothing is taken out yet: both networks have the same tokens there, up to
  // rounding, and further down they have not.
  for (const char* metric : {"bound_spread", "bound_margin"}) {
    const Row *pure = r.table.find("theory", metric, 0),
              *whole = r.table.find("theory, network as it is", metric, 0);
    ASSERT_NE(pure, nullptr);
    ASSERT_NE(whole, nullptr);
    EXPECT_NEAR(whole->value, pure->value, 1e-12 * pure->value);
    const double below = r.table.find("theory", metric, 1)->value;
    EXPECT_GT(std::abs(r.table.find("theory, network as it is", metric, 1)->value - below), 1e-3 * below);
  }
  const Row* floor = r.table.find("float32 rounding", "noise_floor", -1);
  ASSERT_NE(floor, nullptr);
  EXPECT_EQ(floor->value, 0x1p-22);
}

// A chain of layers is proved where every one of them is.
TEST(Collapse, TheCubicBoundIsClaimedWhereItsPreconditionHoldsInEveryLayerOnly) {
  const auto said = [](double scores) {
    ModelSpec spec = test::tiny_spec();
    spec.init.stds = {{"attn.W_Q", scores}, {"attn.W_K", scores}, {"attn.W_V", 1e-5}, {"attn.W_O", 1e-5}};
    const auto source = random_source(spec, 1, "float64", "cpu");
    const Batch batch = make_batches(test::random_samples({12}, 50), spec, 1).front();
    ResultTable table;
    return collapse_theory(spec, *source, batch, "the first text", table).front().sentence;
  };
  EXPECT_TRUE(said(1e-3).starts_with("of the first text the cubic bound holds and shrinks: sqrt(c) r0 = "))
      << said(1e-3);
  const std::string open = said(10);
  EXPECT_TRUE(open.starts_with("of the first text the cubic bound is not proved: sqrt(c) r0 = ")) << open;
  EXPECT_NE(open.find("its precondition fails in 1 of 3 layers"), std::string::npos) << open;
}

TEST(Collapse, ASampleOfOneTokenIsRefused) {
  CollapseRequest r = on_fixture("float32");
  r.scan.max_length = 1;
  try {
    measure_collapse(r, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "a sample of one token has no rank to lose: at least two are needed");
    EXPECT_EQ(e.advice(), "a larger --max-length");
  }
}

}  // namespace
}  // namespace rankscope
