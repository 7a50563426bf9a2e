// What a layer needs after all changes together, counted by hand.
#include "importance/factored.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "checkpoint/load.h"
#include "importance/candidates.h"
#include "importance/planned_model.h"
#include "importance/savings.h"
#include "support/source_tree.h"
#include "support/temporary_folder.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

// 2 heads of width 8 in a stream of 16, biases everywhere.
AttentionSpec plain() {
  AttentionSpec a;
  a.heads = a.kv_heads = 2;
  a.d_qk = a.d_v = 8;
  return a;
}

int64_t parameters(const AttentionSpec& a, int64_t kv_rank = 0) {
  return factored_size(a, kv_rank, 16).parameters;
}

constexpr int64_t kWhole = 4 * 16 * 16 + 3 * 16;

TEST(FactoredSize, OfALayerThatNothingTouchesIsThatOfItsMaps) {
  EXPECT_EQ(parameters(plain()), kWhole);
  EXPECT_EQ(factored_size(plain(), 0, 16).cache, 32);
}

TEST(FactoredSize, CountsTheTwoFactorsOfAProduct) {
  AttentionSpec a = plain();
  a.truncate_qk = 2;
  // Of each head: queries 2 x 16 with 2 biases, keys 3 x 16 (one row is what the queries' biases add).
  EXPECT_EQ(parameters(a), 2 * (2 * 16 + 2 + 3 * 16) + 2 * 16 * 16 + 16);
  EXPECT_EQ(factored_size(a, 0, 16).cache, 2 * (3 + 8));
  a.truncate_ov = 2;  // values 2 x 16, outputs 16 x 2; their biases are in that of the output
  EXPECT_EQ(parameters(a), 2 * (2 * 16 + 2 + 3 * 16 + 4 * 16));
}

TEST(FactoredSize, KeepsKeysAndValuesOnceWhereSeveralCutsMeet) {
  AttentionSpec a = plain();
  // Of each head: a latent 4 x 16; queries 4 x 16 with 4 biases, keys 5 x 4 of it; outputs 16 x 4, values 4
  // x 4.
  EXPECT_EQ(parameters(a, 4), 2 * (4 * 16 + 4 * 16 + 4 + 5 * 4 + 4 * 16 + 4 * 4));
  EXPECT_EQ(factored_size(a, 4, 16).cache, 2 * 4);
  a.truncate_qk = a.truncate_ov = 1;  // two keys and a value are less than a latent of 4
  EXPECT_EQ(parameters(a, 4), 2 * (16 + 1 + 2 * 16 + 16 + 16));
  EXPECT_EQ(parameters(a, 4), parameters(a));
}

TEST(FactoredSize, LeavesMapsAsTheyAreWherePositionsTurnThemAndFactorsAreLarger) {
  AttentionSpec a = plain();
  a.rotary_frequencies = {1.0};
  a.truncate_qk = 6;  // 6 x (8 + 16) is more than 8 x 16
  EXPECT_EQ(parameters(a), kWhole);
  a.truncate_qk = 2;
  EXPECT_EQ(parameters(a), kWhole - 2 * 2 * (8 * 16 - 2 * (8 + 16)));
  EXPECT_EQ(factored_size(a, 0, 16).cache, 32);  // turned keys have all their channels
}

TEST(FactoredSize, OfHeadsThatAreOutIsWhatOthersStillRead) {
  AttentionSpec a = plain();
  a.kv_heads = 1;
  const int64_t one = 16 * 16 + 8;  // queries and outputs of a head
  a.heads_off = {0};
  EXPECT_EQ(parameters(a), one + 2 * 8 * 16 + 16);
  a.heads_off = {0, 1};
  EXPECT_EQ(parameters(a), 0);
  // As the pruning curve counts them.
  ModelSpec spec = test::tiny_spec(NormPlace::pre);
  AttentionSpec& t = spec.blocks[0].attention();
  t.kv_heads = 2;
  const int64_t before = factored_size(t, 0, spec.width).parameters;
  t.heads_off = {0, 1};
  EXPECT_EQ(before - factored_size(t, 0, spec.width).parameters, parameters_saved(spec, {{0, 0}, {0, 1}}));
}

// Whatever the order, what single steps save adds up to what they save together, and never to more than is
// there.
TEST(SavedBeside, AddsUpToWhatAllChangesSaveTogether) {
  for (const char* name : {"gpt2", "opt", "llama", "gpt-neox", "falcon"}) {
    const Checkpoint checkpoint(test::fixtures() / "models" / name);
    const ModelSpec& spec = checkpoint.spec();
    std::vector<std::string> notes;
    const std::vector<Candidate> all = candidates_of(checkpoint, notes);
    int64_t whole = 0, left = 0, saved = 0;
    for (const BlockSpec& b : spec.blocks) whole += factored_size(b.attention(), 0, spec.width).parameters;
    Edits edits;
    for (const Candidate& c : all) {
      if (c.head >= 0 && c.head == spec.blocks[0].attention().heads - 1) continue;  // one stays
      const int64_t more = saved_beside(edits, c, spec);
      EXPECT_GE(more, 0) << name << " " << c.what();
      saved += more;
      edits = with(edits, {&c}, spec);
    }
    for (const auto& [layer, e] : edits)
      left += factored_size(e.spec.attention(), e.kv_rank, spec.width).parameters;
    EXPECT_EQ(saved, whole - left) << name;
    EXPECT_GT(left, 0) << name;
  }
}

TEST(NextCandidates, AreThoseThatSaveMostForTheirCostBesideTheOthers) {
  const Checkpoint checkpoint(test::fixtures() / "models" / "gpt2");
  const ModelSpec& spec = checkpoint.spec();
  const std::vector<Candidate> open{{.layer = 1, .map = "qk", .rank = 1},
                                    {.layer = 1, .map = "qk", .rank = 2},
                                    {.layer = 1, .map = "kv", .rank = 5, .cost = 0.3},
                                    {.layer = 0, .head = 2, .cost = 0.5}};
  const std::vector<const Candidate*> next = next_candidates(open, {}, 10, spec);
  ASSERT_EQ(next.size(), 3u);
  EXPECT_EQ(next.front(), &open[0]);
  for (const Candidate* c : next) EXPECT_NE(c, &open[1]);  // rank 1 is in already
  const Edits taken = with({}, {&open[0], &open[3]}, spec);
  EXPECT_EQ(saved_beside(taken, open[1], spec), 0);
  EXPECT_EQ(saved_beside(taken, open[3], spec), 0);
  EXPECT_EQ(next_candidates(open, {}, 1, spec).size(), 1u);
}

// Every set of changes of a layer, written as a folder. Random weights have every rank that they may have.
TEST(StoredRanks, AreThoseOfTheWrittenTensors) {
  Sample sample;
  sample.ids = {5, 6, 7};
  int64_t checked = 0;
  for (const char* name : {"gpt2", "opt", "llama", "gpt-neox", "phi", "bloom", "falcon", "qwen3"}) {
    const Checkpoint checkpoint(test::fixtures() / "models" / name);
    const ModelSpec& spec = checkpoint.spec();
    const auto source = checkpoint_source(checkpoint, "float32", "cpu");
    std::vector<std::string> notes;
    std::vector<Candidate> changes;  // one head, and every cut
    for (const Candidate& c : candidates_of(checkpoint, notes))
      if (c.layer == 0 && c.head <= 0) changes.push_back(c);
    for (size_t i = 0; i < changes.size(); ++i)
      for (size_t j = i; j < changes.size(); ++j) {
        const Edits edits = with({}, {&changes[i], &changes[j]}, spec);
        const TemporaryFolder folder;
        write_planned_model(checkpoint, *source, edits, {sample}, folder.path());
        const BlockEdit& e = edits.at(0);
        const StoredRanks said = stored_ranks(e.spec.attention(), e.kv_rank, spec.width);
        const Checkpoint planned(folder.path());
        const auto written = checkpoint_source(planned, "float64", "cpu");
        const Weights w = written->load("blocks.0");
        const auto rank =
            [](const at::Tensor& t) {  // stored in float32, whose rounding is 6e-8 of the entries
              const at::Tensor sigma = at::linalg_svdvals(t);
              return (sigma > 1e-5 * sigma.max()).sum().item<int64_t>();
            };
        const at::Tensor k = w.get("attn.W_K"), v = w.get("attn.W_V");
        const std::string what = fmt::format("{}: {}, {}", name, changes[i].what(), changes[j].what());
        EXPECT_EQ(said.q, rank(w.get("attn.W_Q"))) << what;
        EXPECT_EQ(said.k, rank(k)) << what;
        EXPECT_EQ(said.v, rank(v)) << what;
        EXPECT_EQ(said.o, rank(w.get("attn.W_O"))) << what;
        EXPECT_EQ(said.kv, rank(at::cat({k, v}))) << what;
        ++checked;
      }
  }
  EXPECT_GT(checked, 100);
}

// Heads that are all out leave nothing to cut.
TEST(Edits, OfALayerWithoutHeadsHaveNoCuts) {
  const Checkpoint checkpoint(test::fixtures() / "models" / "gpt2");
  const std::vector<Candidate> all{{.layer = 1, .map = "qk", .rank = 1},
                                   {.layer = 1, .map = "kv", .rank = 5},
                                   {.layer = 1, .head = 0},
                                   {.layer = 1, .head = 1},
                                   {.layer = 1, .head = 2}};
  std::vector<const Candidate*> list;
  for (const Candidate& c : all) list.push_back(&c);
  const Edits edits = with({}, list, checkpoint.spec());
  const BlockEdit& e = edits.at(1);
  EXPECT_EQ(e.spec.attention().heads_off.size(), 3u);
  EXPECT_EQ(e.spec.attention().truncate_qk, 0);
  EXPECT_EQ(e.kv_rank, 0);
}

}  // namespace
}  // namespace rankscope
