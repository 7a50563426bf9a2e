// Two layers of rank-1 heads solve by majority what one layer cannot: the construction as weights of real
// networks.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "theory/vote.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

// Layer 1, hard: head h compares query and points along q_h and votes with the place of the point it picks.
at::Tensor votes(const TaskBatch& batch, int64_t d, int64_t heads) {
  ModelSpec n = points_layer(d, heads, 1, 1.0, 2, 2, 2, false);
  n.blocks[0].attention().variant = "hard";
  const Layout layout(n);
  at::Tensor flat = at::zeros({layout.size()});
  const ParameterViews p(layout, flat, false, true);
  at::Tensor q = at::randn({heads, d});
  p.get("blocks.0.attn.W_Q").narrow(1, 0, d).copy_(q);
  p.get("blocks.0.attn.W_K").narrow(1, 0, d).copy_(q);
  p.get("points.embed.W_pos").copy_(at::eye(2));
  for (int64_t h = 0; h < heads; ++h)
    p.get("blocks.0.attn.W_O").narrow(1, h * (d + 2) + d, 2).copy_(at::eye(2));
  const TaskBatch ask{batch.tokens, batch.queries, at::zeros({batch.tokens.size(0), 1, 2})};
  return forward({&n}, p, ask);
}

// Layer 2: one rank-1 head whose query is the margin of the vote and whose keys are the places.
at::Tensor follow(const TaskBatch& batch, const at::Tensor& counts, int64_t d) {
  const ModelSpec n = points_layer(d + 2, 1, 1, 1e3, d);
  const Layout layout(n);
  at::Tensor flat = at::zeros({layout.size()});
  const ParameterViews p(layout, flat, false, true);
  p.get("blocks.0.attn.W_Q")[0][d] = 1.0;
  p.get("blocks.0.attn.W_Q")[0][d + 1] = -1.0;
  p.get("blocks.0.attn.W_K")[0][d] = 1.0;
  p.get("blocks.0.attn.W_K")[0][d + 1] = -1.0;
  p.get("blocks.0.attn.W_O").narrow(1, 0, d).copy_(at::eye(d));
  const int64_t S = batch.tokens.size(0);
  const at::Tensor places = at::eye(2).expand({S, 2, 2});
  const TaskBatch ask{at::cat({batch.tokens, places}, 2), at::cat({at::zeros({S, 1, d}), counts}, 2),
                      batch.target};
  return forward({&n}, p, ask);
}

TEST(VoteConstruction, ErrsAsOftenAsTheTheorySays) {
  const int64_t d = 64, sequences = 1500;
  const TaskSpec spec{.name = "nearest", .data = "ortho", .d = d, .n = 2, .queries = 1};
  const TaskBatch batch = task_named("nearest").sample(spec, *cpu_draw(1, 0, 0, sequences));
  at::manual_seed(5);
  for (const int64_t heads : {63, 256, 1024}) {
    const at::Tensor error =
        squared_error(follow(batch, votes(batch, d, heads), d), batch.target).to(at::kDouble);
    const double stderr_ = error.std().item<double>() / std::sqrt(double(sequences));
    // The heads are drawn once for all sequences: their own chance is of the order of one head in `heads`.
    EXPECT_NEAR(error.mean().item<double>(), vote_error(d, heads), 4 * stderr_ + 1.0 / double(heads))
        << heads;
  }
}

}  // namespace
}  // namespace rankscope
