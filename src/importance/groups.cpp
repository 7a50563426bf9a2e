#include "importance/groups.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/philox.h"
#include "importance/kept.h"
#include "model/kv_latent.h"
#include "model/truncate.h"
#include "tensors/device.h"

namespace rankscope {
namespace {

/// The block without the branches of which a step has run before step `next`.
BlockSpec not_begun(BlockSpec block, const BlockPlan& plan, size_t next) {
  auto begun = static_cast<int64_t>(block.branches.size());
  if (next < plan.steps.size())
    begun = plan.steps[next].branch + (plan.steps[next].kind == Step::Kind::read ? 0 : 1);
  block.branches.erase(block.branches.begin(), block.branches.begin() + begun);
  return block;
}

constexpr int64_t kGroupOnCpu = int64_t{1} << 30;
constexpr size_t kMlpSteps = 3;    // of a branch in front of its join: read, run, write
constexpr uint32_t kResample = 4;  // the stream of random numbers, beside those of pass/

// Networks that run one block alike go through it side by side, up to so many tokens: that fills a GPU, and
// on a CPU nothing is gained by it.
int64_t tokens_side_by_side(const at::Tensor& x) { return x.is_cuda() ? 32768 : 0; }

Batch repeated(const Batch& batch, int64_t times) {
  Batch out;
  out.has_types = batch.has_types;
  out.offsets.push_back(0);
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (int64_t i = 0; i < times; ++i) {
    append(out.ids, batch.ids);
    append(out.types, batch.types);
    append(out.positions, batch.positions);
    append(out.content, batch.content);
    append(out.samples, batch.samples);
    for (int64_t s = 0; s < batch.count(); ++s) out.offsets.push_back(out.offsets.back() + batch.length(s));
  }
  return out;
}

// One group of networks on its way through the blocks.
class Group {
 public:
  Group(Evaluator::Impl& e, const std::vector<Variation>& all, std::vector<size_t> members)
      : e_(e), all_(all), members_(std::move(members)) {}

  /// What each of the networks ends in, in the order of the members, by batch.
  std::vector<std::vector<at::Tensor>> run() {
    int64_t first = e_.spec.depth();
    for (const size_t v : members_) first = std::min(first, all_[v].first);
    for (int64_t l = first; l < e_.spec.depth(); ++l) {
      const Weights weights = e_.block_weights(l);
      advance(l, weights);
      enter(l, weights);
      if (e_.job.progress)
        e_.job.progress(l + 1, e_.spec.depth(), fmt::format("{} networks beside the full one", live_.size()));
    }
    std::vector<std::vector<at::Tensor>> out(members_.size());
    for (Live& live : live_) {
      auto& to = out[static_cast<size_t>(std::find(members_.begin(), members_.end(), live.variation) -
                                         members_.begin())];
      for (size_t b = 0; b < e_.batches.size(); ++b) {
        to.push_back(e_.ended(live.x[b], b));
        live.x[b].reset();
      }
    }
    return out;
  }

 private:
  struct Live {
    size_t variation;
    std::vector<at::Tensor> x;  // by batch
  };

  const BlockSpec& block(int64_t l) const { return e_.spec.blocks[static_cast<size_t>(l)]; }

  at::Tensor plain(int64_t l, const Weights& weights, const at::Tensor& x, const Batch& batch) {
    BlockObserver nobody;
    e_.flops += e_.block_cost(block(l), batch);
    return run_block(x, block(l), weights, batch, nobody);
  }

  at::Tensor edited(const BlockEdit& edit, const Weights& weights, const at::Tensor& x, const Batch& batch) {
    BlockObserver nobody;
    e_.flops += e_.block_cost(edit.spec, batch);
    return run_block(x, edit.spec, weights, batch, nobody);
  }

  void advance(int64_t l, const Weights& weights) {
    std::vector<Live*> alike;
    for (Live& live : live_) {
      const auto edit = all_[live.variation].edits.find(l);
      if (edit == all_[live.variation].edits.end()) {
        alike.push_back(&live);
        continue;
      }
      BlockEdit own = edit->second;
      const Weights changed = edited_weights(own, weights);
      for (size_t b = 0; b < e_.batches.size(); ++b)
        live.x[b] = edited(own, changed, live.x[b], e_.batches[b]);
    }
    for (size_t b = 0; b < e_.batches.size(); ++b) side_by_side(l, weights, alike, b);
  }

  void side_by_side(int64_t l, const Weights& weights, const std::vector<Live*>& alike, size_t b) {
    if (alike.empty()) return;
    const int64_t most = std::max<int64_t>(
        1, tokens_side_by_side(alike.front()->x[b]) / std::max<int64_t>(1, e_.batches[b].tokens()));
    for (size_t i = 0; i < alike.size(); i += static_cast<size_t>(most)) {
      const size_t count = std::min(alike.size() - i, static_cast<size_t>(most));
      if (count == 1) {
        alike[i]->x[b] = plain(l, weights, alike[i]->x[b], e_.batches[b]);
        continue;
      }
      std::vector<at::Tensor> parts;
      for (size_t k = 0; k < count; ++k) parts.push_back(alike[i + k]->x[b]);
      const at::Tensor y =
          plain(l, weights, at::cat(parts), repeated(e_.batches[b], static_cast<int64_t>(count)));
      const std::vector<at::Tensor> out = y.chunk(static_cast<int64_t>(count));
      for (size_t k = 0; k < count; ++k) alike[i + k]->x[b] = out[k];
    }
  }

  // Networks that differ from here on.
  void enter(int64_t l, const Weights& weights) {
    for (const size_t v : members_) {
      const Variation& variation = all_[v];
      if (variation.first != l) continue;
      Live live{v, {}};
      if (variation.unit) {
        for (size_t b = 0; b < e_.batches.size(); ++b) live.x.push_back(without(variation, l, weights, b));
      } else {
        const auto edit = variation.edits.find(l);
        BlockEdit own = edit != variation.edits.end() ? edit->second : BlockEdit{block(l), 0};
        const Weights changed = edited_weights(own, weights);
        for (size_t b = 0; b < e_.batches.size(); ++b)
          live.x.push_back(edited(own, changed, e_.kept[static_cast<size_t>(l)][b].x, e_.batches[b]));
      }
      live_.push_back(std::move(live));
    }
  }

  // What the block leaves without one of its parts.
  at::Tensor without(const Variation& v, int64_t l, const Weights& weights, size_t b) {
    const KeptBlock& k = e_.kept[static_cast<size_t>(l)][b];
    const Unit& unit = *v.unit;
    if (unit.kind == UnitKind::layer) return k.x;
    BlockSpec own = block(l);
    if (unit.kind == UnitKind::expert) own.mlp_branch()->mlp()->experts_off = {unit.index};
    const bool subtract = unit.kind == UnitKind::head && k.attended.value.defined();
    if (unit.kind == UnitKind::head && !subtract) {
      own.attention().heads_off = {unit.index};
      BlockObserver nobody;
      e_.flops += e_.block_cost(own, e_.batches[b]);
      return run_block(k.x, own, weights, e_.batches[b], nobody);
    }
    const BlockPlan plan(own, e_.spec.width);
    const Resume at = resume_points(plan, own);
    BlockObserver nobody;
    const BlockContext context{plan, weights, e_.batches[b], nobody};
    BlockState state = subtract ? k.attended : k.before_mlp;
    size_t next = subtract ? at.attended : at.before_mlp;
    if (subtract) state.value = state.value - lost(v, l, weights, b, at.scale);
    if (unit.kind == UnitKind::mlp) next = silence(v, plan, context, state, next, b);
    e_.flops += e_.block_cost(not_begun(own, plan, next), e_.batches[b]);
    for (; next < plan.steps.size(); ++next) run_step(plan.steps[next], context, state, true);
    return state.stream;
  }

  // What the layer's output loses with the head: (z_h - r_h) W_O, r_h what is put in its place.
  at::Tensor lost(const Variation& v, int64_t l, const Weights& weights, size_t b, double scale) {
    const AttentionSpec& a = block(l).attention();
    const at::Tensor z = e_.kept[static_cast<size_t>(l)][b].z.select(1, v.unit->index);  // [N, d_v]
    const at::Tensor W = weights.get("attn.W_O").narrow(1, v.unit->index * a.d_v, a.d_v);
    at::Tensor gone = z;
    if (v.replacement == Replacement::mean) gone = z - mean_of(l, v.unit->index);
    if (v.replacement == Replacement::resample) gone = z - z.index_select(0, order(b, z));
    e_.flops += 2.0 * static_cast<double>(z.numel() * W.size(0));
    const at::Tensor out = at::linear(gone, W);
    return scale == 1.0 ? out : out * scale;
  }

  at::Tensor mean_of(int64_t l, int64_t head) {
    at::Tensor sum;
    int64_t tokens = 0;
    for (const KeptBlock& k : e_.kept[static_cast<size_t>(l)]) {
      const at::Tensor here = k.z.select(1, head).to(at::kDouble).sum(0);
      sum = sum.defined() ? sum + here : here;
      tokens += k.z.size(0);
    }
    return (sum / static_cast<double>(tokens)).to(e_.kept[static_cast<size_t>(l)].front().z.scalar_type());
  }

  // Every token of the batch once, in a random order.
  at::Tensor order(size_t b, const at::Tensor& like) const {
    const Philox random{e_.job.seed, kResample, static_cast<uint32_t>(b)};
    std::vector<int64_t> all(static_cast<size_t>(e_.batches[b].tokens()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i, i)]);
    return at::tensor(all, at::kLong).to(like.device());
  }

  // The MLP's branch up to its join, which is the next step: what it adds to the stream is replaced.
  size_t silence(const Variation& v, const BlockPlan& plan, const BlockContext& context, BlockState& state,
                 size_t next, size_t b) {
    const Replacement replacement = v.replacement;
    if (replacement == Replacement::resample) {
      next = run_mlp(plan, context, state, next);
      count_mlp(v.unit->layer, b);
      state.value = state.value.index_select(0, order(b, state.value));
      return next;
    }
    const size_t joins = next + kMlpSteps;
    run_step(plan.steps[next], context, state, true);
    state.value =
        replacement == Replacement::zero
            ? at::zeros_like(state.stream)
            : mlp_mean(v.unit->layer, plan, context.weights, next).expand_as(state.stream).contiguous();
    return joins;
  }

  // Read, run and write: what the branch adds to the stream is the state's value then.
  static size_t run_mlp(const BlockPlan& plan, const BlockContext& context, BlockState& state, size_t next) {
    for (size_t i = 0; i < kMlpSteps; ++i) run_step(plan.steps[next++], context, state, true);
    return next;
  }

  void count_mlp(int64_t l, size_t b) {
    BlockSpec ran;
    ran.branches = {*block(l).mlp_branch()};
    e_.flops += e_.block_cost(ran, e_.batches[b]);
  }

  // What the MLP writes in the mean over the tokens of all samples, in whatever batches they come.
  const at::Tensor& mlp_mean(int64_t l, const BlockPlan& plan, const Weights& weights, size_t first) {
    at::Tensor& mean = mlp_means_[l];
    if (mean.defined()) return mean;
    int64_t tokens = 0;
    at::Tensor sum, like;
    for (size_t b = 0; b < e_.batches.size(); ++b) {
      BlockObserver nobody;
      BlockState state = e_.kept[static_cast<size_t>(l)][b].before_mlp;
      run_mlp(plan, {plan, weights, e_.batches[b], nobody}, state, first);
      count_mlp(l, b);
      like = state.value;
      const at::Tensor here = like.to(at::kDouble).sum(0, true);
      sum = sum.defined() ? sum + here : here;
      tokens += like.size(0);
    }
    return mean = (sum / static_cast<double>(tokens)).to(like.scalar_type());
  }

  Evaluator::Impl& e_;
  const std::vector<Variation>& all_;
  std::vector<size_t> members_;
  std::vector<Live> live_;
  std::map<int64_t, at::Tensor> mlp_means_;  // by layer
};

}  // namespace

Weights edited_weights(BlockEdit& edit, const Weights& weights) {
  Weights out = edit.kv_rank > 0 ? with_kv_latent(weights, edit.spec, edit.kv_rank) : weights.shallow_copy();
  return is_truncated(edit.spec) ? truncated(out, edit.spec) : std::move(out);
}

void each_group(Evaluator::Impl& e, const std::vector<Variation>& variations, const TakeGroup& take) {
  const c10::NoGradGuard no_grad;
  std::vector<size_t> sorted(variations.size());
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](size_t a, size_t b) { return variations[a].first < variations[b].first; });
  int64_t tokens = 0;
  for (const Batch& b : e.batches) tokens += b.tokens();
  const int64_t each = 2 * tokens * e.spec.width * e.last.front().element_size();
  const int64_t bytes = e.job.group_bytes > 0      ? e.job.group_bytes
                        : e.last.front().is_cuda() ? device_memory(e.job.device).free / 4
                                                   : kGroupOnCpu;
  auto most = static_cast<size_t>(std::max<int64_t>(1, bytes / std::max<int64_t>(1, each)));
  for (size_t i = 0; i < sorted.size();) {
    const std::vector<size_t> members(
        sorted.begin() + static_cast<std::ptrdiff_t>(i),
        sorted.begin() + static_cast<std::ptrdiff_t>(std::min(sorted.size(), i + most)));
    const double before = e.flops;
    try {
      take(members, Group(e, variations, members).run());
      i += members.size();
    } catch (const c10::OutOfMemoryError&) {  // of a GPU: a smaller group, until one alone does not fit
      if (members.size() == 1) throw;
      e.flops = before;
      most = members.size() / 2;
      release_device_memory();
    }
  }
}

}  // namespace rankscope
