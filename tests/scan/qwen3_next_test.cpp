// A scan of a network in which most layers keep a state and one has a pattern: every number belongs to what
// it is a number of.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "checkpoint/safetensors.h"
#include "scan/fixture_request.h"
#include "support/temporary_folder.h"

namespace rankscope {
namespace {

std::set<int> layers_with(const ScanResult& r, const char* metric) {
  std::set<int> out;
  for (const Row& row : r.table.rows)
    if (row.variant == "full" && row.metric == metric && row.layer >= 0) out.insert(row.layer);
  return out;
}

TEST(Qwen3Next, PatternsAndMapsAreReadWhereTheyAre) {
  const TemporaryFolder folder;
  ScanRequest request = test::random_tokens_through("qwen3-next", 3, 12);
  request.patterns = folder.path() / "patterns.safetensors";
  request.show = true;
  const ScanResult r = scan(request, {});
  for (const char* metric : {"attention_entropy", "sink_margin", "qk_effective_rank", "ov_effective_rank"})
    EXPECT_EQ(layers_with(r, metric), std::set<int>{2}) << metric;
  EXPECT_EQ(layers_with(r, "head_varied_rel"), (std::set<int>{0, 1, 2, 3}));
  EXPECT_NE(std::find(r.notes.begin(), r.notes.end(),
                      "3 of 4 layers, the first of them layer 0, have no attention pattern: what is said of "
                      "patterns and sinks is said of the others"),
            r.notes.end());
  const SafetensorsFile written(*request.patterns);
  ASSERT_EQ(written.tensors().size(), 1u);
  EXPECT_EQ(written.tensors().begin()->first, "blocks.2.attn.hook_pattern");
}

}  // namespace
}  // namespace rankscope
