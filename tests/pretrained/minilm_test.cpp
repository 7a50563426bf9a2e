// A real pretrained model, all-MiniLM-L6-v2: what is known of it must come out.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "checkpoint/load.h"
#include "pass/pass.h"
#include "pass/variants.h"
#include "scan/scan.h"
#include "support/source_tree.h"
#include "support/temporary_folder.h"
#include "text/tokenizer.h"

namespace rankscope {
namespace {

std::filesystem::path model() {
  const char* folder = std::getenv("RANKSCOPE_MINILM");
  if (folder == nullptr) throw std::runtime_error("run with ctest, which fetches the model");
  return folder;
}

// The model's own recipe: mean of the last hidden state over the tokens, then unit length.
at::Tensor sentence_embeddings(const std::vector<std::string>& sentences) {
  const Checkpoint checkpoint(model());
  const auto tokenizer = load_tokenizer(model());
  const auto source = checkpoint_source(checkpoint, "float32", "cpu");
  std::vector<Sample> samples;
  for (const std::string& text : sentences) {
    samples.emplace_back();
    samples.back().ids = tokenizer->encode(text).ids;
  }
  PassPlan plan;
  plan.variants = {{"full", checkpoint.spec(), 0, 0}};
  plan.sources = {source.get()};
  plan.inputs.push_back(make_batches(samples, checkpoint.spec(), 8));
  plan.layers = parse_layers("", checkpoint.spec().depth());
  ResultTable table;
  std::vector<std::string> notes;
  const auto states = run_pass(plan, table, notes, {});
  at::Tensor out = at::empty({static_cast<int64_t>(sentences.size()), checkpoint.spec().width});
  for (size_t b = 0; b < plan.inputs[0].size(); ++b) {
    const Batch& batch = plan.inputs[0][b];
    for (int64_t s = 0; s < batch.count(); ++s) {
      const at::Tensor mean =
          (*states[0].x)[b].narrow(0, batch.offsets[static_cast<size_t>(s)], batch.length(s)).mean(0);
      out[batch.samples[static_cast<size_t>(s)]] = mean / mean.norm();
    }
  }
  return out;
}

class MiniLm : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(model() / "config.json")) GTEST_SKIP() << "the model could not be fetched";
  }
};

TEST_F(MiniLm, GivesBertsTokenIds) {
  const auto tokenizer = load_tokenizer(model());
  EXPECT_EQ(tokenizer->encode("Hello world").ids, (std::vector<int64_t>{101, 7592, 2088, 102}));
  EXPECT_EQ(tokenizer->encode_pair("A", "B").types, (std::vector<int64_t>{0, 0, 0, 1, 1}));
}

TEST_F(MiniLm, ReproducesThePublishedSimilarities) {
  const at::Tensor e = sentence_embeddings({"That is a happy person", "That is a happy dog",
                                            "That is a very happy person", "Today is a sunny day"});
  const at::Tensor cosine = e.matmul(e[0]);
  // The numbers the model's hosts show for these sentences, from float32 weights; these are stored in
  // float16, whose relative step of 1e-3 moves a cosine by a few of those.
  EXPECT_NEAR(cosine[1].item<double>(), 0.6945, 5e-3);
  EXPECT_NEAR(cosine[2].item<double>(), 0.9429, 5e-3);
  EXPECT_NEAR(cosine[3].item<double>(), 0.2569, 5e-3);
}

TEST_F(MiniLm, FindsParaphrasesNearerThanUnrelatedSentences) {
  const at::Tensor e =
      sentence_embeddings({"A man is eating food.", "A man is eating a piece of bread.",
                           "A cheetah is running behind its prey.", "The stock market fell sharply."});
  const double paraphrase = e[0].dot(e[1]).item<double>();
  for (const int64_t other : {2, 3}) EXPECT_GT(paraphrase, e[0].dot(e[other]).item<double>() + 0.3) << other;
}

TEST_F(MiniLm, KeepsItsRankThroughTheSkipsAndLosesItDoublyExponentiallyWithout) {
  const TemporaryFolder folder;
  write_file(
      folder.path() / "text.txt",
      "The quick brown fox jumps over the lazy dog while the old sailor watches the harbour lights go out.\n"
      "Attention layers mix tokens; without the residual stream every token soon carries the same vector.\n"
      "She bought bread, cheese and two bottles of wine before the shops closed for the holiday weekend.\n");
  ScanRequest request;
  request.model = model();
  request.texts = {(folder.path() / "text.txt").string()};
  request.lines = true;
  request.off = {"skip+mlp"};
  const ScanResult result = scan(request, {});
  const auto residual = [&](const char* variant, int layer) {
    const Row* row = result.table.find(variant, "residual_l1inf_rel", layer, -1, "all",
                                       fmt::format("blocks.{}.hook_resid_post", layer));
    return row == nullptr ? std::nan("") : row->value;
  };
  for (int l = 0; l < 6; ++l) EXPECT_GT(residual("full", l), 0.3) << l;
  // Each layer is at least as far below the last as that was below the one before, until float32 ends it.
  EXPECT_LT(residual("-skip+mlp", 5), 1e-3);
  double last = 1, ratio = 1;
  for (int l = 1; l < 6 && residual("-skip+mlp", l) > 1e-6; ++l) {
    EXPECT_LT(residual("-skip+mlp", l), residual("-skip+mlp", l - 1)) << l;
    ratio = residual("-skip+mlp", l) / last;
    last = residual("-skip+mlp", l);
  }
  EXPECT_LT(ratio, 0.5);
  EXPECT_EQ(result.manifest["input"]["samples"], 3);
}

/// The README shows what this scan says, shortened with three dots.
TEST_F(MiniLm, HasTheSinksThatTheReadmeShows) {
  const std::string page = read_file(test::source_tree() / "README.md");
  const size_t from = page.find("  sink      ") + 12, to = page.find("...", from);
  ASSERT_LT(to, page.size());
  ScanRequest request;
  request.model = model();
  request.texts = {(test::source_tree() / "models" / "builtin" / "demo.txt").string()};
  request.lenses = {"margins"};
  std::string said;
  for (const Finding& finding : scan(request, {}).verdict)
    if (finding.topic == "sink" && said.empty()) said = finding.sentence;
  EXPECT_EQ(said.substr(0, to - from), page.substr(from, to - from));
}

}  // namespace
}  // namespace rankscope
