#include "operator/rerun.h"

#include <gtest/gtest.h>

#include <set>

#include "operator/dense_reference.h"
#include "operator/paths.h"

namespace rankscope {
namespace {

using namespace test;

TEST(SamplePaths, AreDifferentAndOfTheRightLength) {
  const std::vector<Path> paths = sample_paths(6, 3, 4, 50, 7, 0);
  ASSERT_EQ(paths.size(), 50u);
  EXPECT_EQ(std::set<Path>(paths.begin(), paths.end()).size(), 50u);
  for (const Path& p : paths) {
    EXPECT_EQ(p.size(), 6u);
    EXPECT_EQ(std::count_if(p.begin(), p.end(), [](int h) { return h >= 0; }), 4);
    EXPECT_LT(*std::max_element(p.begin(), p.end()), 3);
  }
  EXPECT_EQ(paths, sample_paths(6, 3, 4, 50, 7, 0));
  EXPECT_NE(paths, sample_paths(6, 3, 4, 50, 7, 1));
}

TEST(SamplePaths, AreAllOfThemWhereThereAreNoMore) {
  const int64_t counts[] = {1, 12, 60, 160, 240, 192, 64};
  for (int64_t k = 0; k <= 6; ++k) {
    const std::vector<Path> all = sample_paths(6, 2, k, 240, 1, 0);
    EXPECT_EQ(static_cast<int64_t>(all.size()), counts[k]);
    EXPECT_EQ(static_cast<int64_t>(std::set<Path>(all.begin(), all.end()).size()), counts[k]);
  }
}

TEST(SamplePaths, AreUniform) {
  // 12 paths of length 1, 6 at a time: each is drawn half of the time, 400 draws, within 5 standard
  // deviations.
  std::map<Path, int> seen;
  for (uint32_t draw = 0; draw < 400; ++draw)
    for (const Path& p : sample_paths(6, 2, 1, 6, 3, draw)) ++seen[p];
  ASSERT_EQ(seen.size(), 12u);
  for (const auto& [path, times] : seen) EXPECT_NEAR(times, 200, 5 * std::sqrt(400 * 0.25));
}

TEST(Rerun, TheEmptyPathIsTheInput) {
  const Tiny m(NormPlace::post, "mlp");
  const PathRunner runner(m.spec, *m.source, m.batch);
  const at::Tensor x = embed(m.batch, m.spec, m.source->load("embed"), *m.source);
  EXPECT_TRUE(at::equal(runner.run({-1, -1, -1}, Semantics::rerun), x));
}

TEST(Rerun, SubPathsOfTheOnlyHeadAreTheNetwork) {
  // One head in every layer: the path through all of them with all sub-paths is the network itself.
  const Tiny m(NormPlace::post, "", [](ModelSpec& s) {
    for (BlockSpec& b : s.blocks) b.attention().heads = b.attention().kv_heads = 1;
  });
  const PathRunner runner(m.spec, *m.source, m.batch);
  EXPECT_LE(distance(runner.run({0, 0, 0}, Semantics::subpaths), network_output(m.spec, *m.source, m.batch)),
            1e-12);
}

TEST(Rerun, OneHeadEqualsTheBlockWithTheOthersOff) {
  for (const char* fixture : {"xlnet", "llama", "gpt2", "bert", "qwen3-next"}) {
    const Loaded m = load(fixture, "float64");
    const PathRunner runner(m.spec, *m.source, m.batch);
    const int64_t H = m.spec.blocks[0].attention().heads;
    for (int head : {0, static_cast<int>(H) - 1}) {
      Path path(m.spec.blocks.size(), -1);
      path[1] = head;
      BlockSpec block = m.spec.blocks[1];
      for (int64_t h = 0; h < H; ++h)
        if (h != head) block.attention().heads_off.push_back(h);
      BlockObserver nobody;
      const at::Tensor x = embed(m.batch, m.spec, m.source->load("embed"), *m.source);
      const at::Tensor y = run_block(x, block, m.source->load("blocks.1"), m.batch, nobody);
      EXPECT_LE(distance(runner.run(path, Semantics::subpaths), y), 1e-12) << fixture << " " << head;
    }
  }
}

TEST(Rerun, OnALinearNetworkItIsTheFrozenSum) {
  // Without norms, biases and MLPs, and with attention that does not depend on its input (no queries), a path
  // run again is the frozen path.
  Tiny m(NormPlace::post, "mlp+norm");
  m.source->overwrite = [](const std::string& name, at::Tensor& t) {
    if (name == "attn.W_Q" || name.find("b_") != std::string::npos) t = at::zeros_like(t);
  };
  const FrozenNetwork frozen = m.freeze();
  const at::Tensor sums = path_sums(frozen.trunk(), frozen.input());
  const PathRunner runner(m.spec, *m.source, m.batch);
  for (int64_t k = 0; k <= 3; ++k)
    EXPECT_LE(distance(runner.sum(sample_paths(3, 4, k, 1000, 0, 0), Semantics::rerun), sums[k][0][0]),
              1e-12);
}

TEST(Rerun, NamesAreAnsweredWithTheNearest) {
  EXPECT_EQ(semantics_of("rerun"), Semantics::rerun);
  EXPECT_THROW(semantics_of("re-run"), Error);
}

}  // namespace
}  // namespace rankscope
