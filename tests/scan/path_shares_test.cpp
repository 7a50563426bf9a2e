// What a scan's report says of paths: the same as rankscope paths, where it is affordable.
#include "paths/shares.h"
#include "scan/scan.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "paths/paths.h"
#include "support/source_tree.h"

namespace rankscope {
namespace {

ScanRequest request_for(const std::string& fixture) {
  ScanRequest r;
  r.model = test::fixtures() / "models" / fixture;
  if (fixture == "vit")
    r.pixels = r.model / "activations.safetensors";
  else
    r.random_tokens = true;
  r.samples = 1;
  r.max_length = 9;
  r.dtype = "float64";
  r.show = true;
  return r;
}

std::vector<double> shares(const ScanResult& result, const char* variant) {
  std::vector<double> out;
  for (const Row& r : result.table.rows)
    if (r.variant == variant && r.metric == "path_share") {
      EXPECT_EQ(r.depth, static_cast<int32_t>(out.size()));
      out.push_back(r.value);
    }
  return out;
}

TEST(PathsShown, AScanWithAReportHasTheSharesThatPathsHas) {
  for (const char* fixture : {"bert", "gpt2", "albert", "llama", "xlnet", "vit"}) {
    PathsRequest paths;
    paths.scan = request_for(fixture);
    const std::vector<double> ours = shares(scan(paths.scan, {}), "full"),
                              theirs = shares(measure_paths(paths, {}), "only");
    ASSERT_FALSE(ours.empty()) << fixture;
    EXPECT_EQ(ours, theirs) << fixture;
  }
}

TEST(PathsShown, WithWhatTheBiasesWriteTheSharesMakeOne) {
  for (const char* fixture : {"bert", "gpt2", "llama"}) {
    const ScanResult result = scan(request_for(fixture), {});
    double sum = 0;
    int biases = 0;
    for (const Row& r : result.table.rows) {
      if (r.metric == "path_share" || r.metric == "path_share_bias") sum += r.value;
      if (r.metric != "path_share_bias") continue;
      ++biases;
      EXPECT_EQ(r.depth, -1);
    }
    EXPECT_EQ(biases, 1) << fixture;
    EXPECT_NEAR(sum, 1, 0x1p-50) << fixture;  // a sum of at most eight numbers below 1, each rounded once
  }
}

TEST(PathsShown, NobodyPaysForThemWithoutAReportOrWithLensesOfOnesOwn) {
  ScanRequest request = request_for("bert");
  request.lenses = {"residual"};
  EXPECT_TRUE(shares(scan(request, {}), "full").empty());
  request = request_for("bert");
  request.show = false;
  EXPECT_TRUE(shares(scan(request, {}), "full").empty());
}

// Nothing may be read of a network that is too large.
class Untouched : public WeightSource {
 public:
  const ModelSpec& spec() const override { throw std::logic_error("spec"); }
  Weights load(const std::string&) override { throw std::logic_error("load"); }
  at::Tensor rows(const std::string&, const at::Tensor&) override { throw std::logic_error("rows"); }
  at::Tensor row_range(const std::string&, int64_t, int64_t) override { throw std::logic_error("row_range"); }
};

TEST(PathsShown, DearOnesAreLeftOutAndANoteSaysSo) {
  ModelSpec spec;
  spec.width = 1024;
  spec.stored_blocks = 96;
  spec.embedding.vocabulary = 10;
  BlockSpec block = classic_block(NormPlace::post, {NormKind::layer}, {}, "mlp", {.width = 4096});
  block.attention().heads = block.attention().kv_heads = 16;
  block.attention().d_qk = block.attention().d_v = 64;
  for (int l = 0; l < 96; ++l) {
    block.weights = l;
    spec.blocks.push_back(block);
  }
  Batch shown;
  shown.offsets = {0, 128};
  shown.samples = {0};
  Untouched source;
  ResultTable table;
  std::vector<std::string> notes;
  add_path_shares(spec, source, shown, 128, table, notes);
  EXPECT_TRUE(table.rows.empty());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("rankscope paths"), std::string::npos);
}

}  // namespace
}  // namespace rankscope
