#include "importance/sharing.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "importance/kept.h"

namespace rankscope {
namespace {

struct Tile {
  at::Tensor pattern;  // [samples, H, rows, T]
  TilePlace place;
};

class SeenPatterns : public BlockObserver {
 public:
  bool wants(std::string_view site) const override { return site == "attn.hook_pattern"; }
  void see(std::string_view site, const at::Tensor& pattern, const TilePlace& place) override {
    if (wants(site)) tiles.push_back({pattern.clone(), place});
  }
  std::vector<Tile> tiles;
};

const BranchSpec* own_attention(const BlockSpec& block) {
  const BranchSpec* branch = block.attention_branch();
  return branch != nullptr && branch->name == "attn" && branch->reads.empty() ? branch : nullptr;
}

// Values one map of the tokens, what the heads carry straight into one map.
bool is_plain(const BranchSpec& branch, int64_t width) {
  const Program program = program_of(branch, width);
  const Operation* attend = program.attend();
  if (attend == nullptr || attend->third < kFirstMade || !program.writes_heads()) return false;
  const Operation& value = program.made(attend->third);
  return value.kind == Operation::Kind::linear && value.from < kFirstMade;
}

at::Tensor mapped(const Operation& o, const at::Tensor& x, const Weights& weights) {
  const at::Tensor& W = weights.get(o.W);
  return at::linear(x, o.scale == 1.0 ? W : W * o.scale,
                    o.b.empty() ? at::Tensor() : weights.get_or_none(o.b));
}

// What attention writes for tokens x with patterns that are given.
at::Tensor attended(const at::Tensor& x, const std::vector<Tile>& tiles, const Program& program,
                    const AttentionSpec& a, const Weights& weights, const Batch& batch) {
  const at::Tensor v = mapped(program.made(program.attend()->third), x, weights);
  const at::Tensor z = at::empty({x.size(0), a.heads, a.d_v}, x.options());
  for (const Tile& t : tiles) {
    const int64_t count = t.pattern.size(0), T = t.pattern.size(3);
    const int64_t begin = batch.offsets[static_cast<size_t>(t.place.first_sample)];
    const at::Tensor values = v.narrow(0, begin, count * T)
                                  .view({count, T, a.kv_heads, a.d_v})
                                  .transpose(1, 2)
                                  .repeat_interleave(a.heads / a.kv_heads, 1);
    z.narrow(0, begin, count * T)
        .view({count, T, a.heads, a.d_v})
        .narrow(1, t.place.first_row, t.pattern.size(2))
        .copy_(at::matmul(t.pattern, values).transpose(1, 2));
  }
  return mapped(program.operations.back(), z.flatten(1), weights);
}

}  // namespace

std::vector<int64_t> layers_that_can_share(const ModelSpec& spec) {
  std::vector<int64_t> out;
  for (int64_t l = 1; l < spec.depth(); ++l) {
    const BranchSpec* own = own_attention(spec.blocks[static_cast<size_t>(l)]);
    const BranchSpec* before = own_attention(spec.blocks[static_cast<size_t>(l - 1)]);
    if (own == nullptr || before == nullptr || !is_plain(*own, spec.width)) continue;
    const AttentionSpec &a = *own->attention(), &b = *before->attention();
    if (a.heads == b.heads && a.causal == b.causal && a.window == b.window && a.variant == b.variant &&
        a.sinks == b.sinks)
      out.push_back(l);
  }
  return out;
}

int64_t parameters_shared(const ModelSpec& spec, const std::set<int64_t>& layers) {
  int64_t out = 0;
  for (const int64_t l : layers) {
    const Program program = program_of(*own_attention(spec.blocks[static_cast<size_t>(l)]), spec.width);
    for (const Parameter& p : program.parameters)
      for (const char* ending : {".W_Q", ".b_Q", ".W_K", ".b_K"})
        if (p.name.ends_with(ending)) out += element_count(p);
  }
  return out;
}

Judged judge_shared(Evaluator& evaluator, const std::set<int64_t>& layers) {
  const c10::NoGradGuard no_grad;
  Evaluator::Impl& e = evaluator.impl();
  if (layers.empty()) return e.full;
  const int64_t first = *layers.begin() - 1;
  std::vector<at::Tensor> x;
  for (const KeptBlock& k : e.kept[static_cast<size_t>(first)]) x.push_back(k.x);
  std::vector<std::vector<Tile>> patterns(e.batches.size());
  for (int64_t l = first; l < e.spec.depth(); ++l) {
    const BlockSpec& block = e.spec.blocks[static_cast<size_t>(l)];
    const Weights weights = e.block_weights(l);
    const BlockPlan plan(block, e.spec.width);
    const bool shares = layers.count(l) > 0, shown = !shares && layers.count(l + 1) > 0;
    for (size_t b = 0; b < e.batches.size(); ++b) {
      BlockObserver nobody;
      SeenPatterns seen;
      const BlockContext context{plan, weights, e.batches[b],
                                 shown ? static_cast<BlockObserver&>(seen) : nobody};
      BlockState state = block_start(x[b]);
      for (const Step& step : plan.steps) {
        const BranchSpec& branch = block.branches[static_cast<size_t>(step.branch)];
        if (shares && step.kind == Step::Kind::run && &branch == block.attention_branch())
          state.value = attended(state.value, patterns[b], plan.programs[static_cast<size_t>(step.branch)],
                                 *branch.attention(), weights, e.batches[b]);
        else
          run_step(step, context, state, true);
      }
      x[b] = state.stream;
      if (shown) patterns[b] = std::move(seen.tiles);
      e.flops += e.block_cost(block, e.batches[b]);
    }
  }
  for (size_t b = 0; b < e.batches.size(); ++b) x[b] = e.ended(x[b], b);
  return e.judge({x}).front();
}

}  // namespace rankscope
