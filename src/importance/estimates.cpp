#include "importance/estimates.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "importance/kept.h"
#include "importance/output_scores.h"

namespace rankscope {
namespace {

using at::Tensor;

class SeenHeads : public BlockObserver {
 public:
  bool wants(std::string_view site) const override { return site == "attn.hook_z"; }
  void see(std::string_view site, const Tensor& z, const TilePlace&) override {
    if (site == "attn.hook_z") z_ = z.detach();
  }
  const Tensor& z() const { return z_; }

 private:
  Tensor z_;
};

class Estimator {
 public:
  Estimator(Evaluator::Impl& e, WriteGradients* gradients)
      : e_(e), gradients_(gradients), scores_(e, kDraws, e.job.questions.kind != LossKind::none) {
    const auto depth = static_cast<size_t>(e.spec.depth());
    out_.loss.resize(depth);
    out_.kl.resize(depth);
    out_.scores.resize(depth);
    if (gradients_ != nullptr)
      gradients_->by_layer.assign(depth, std::vector<std::vector<Tensor>>(e.batches.size()));
  }

  HeadEstimates run() {
    for (size_t b = 0; b < e_.batches.size(); ++b) above_.push_back(scores_.behind_last_block(b));
    for (int64_t l = e_.spec.depth(); l-- > 0;) {
      const Weights weights = e_.block_weights(l);
      for (size_t b = 0; b < e_.batches.size(); ++b) down(l, b, weights);
      if (e_.job.progress) e_.job.progress(e_.spec.depth() - l, e_.spec.depth(), "gradients");
    }
    return std::move(out_);
  }

 private:
  bool has_loss() const { return e_.job.questions.kind != LossKind::none; }
  size_t directions() const { return scores_.directions(); }  // the draws, then the loss

  // Through one block, once forward and once back for each direction.
  void down(int64_t l, size_t b, const Weights& weights) {
    const at::AutoGradMode on(true);
    const BlockSpec& block = e_.spec.blocks[static_cast<size_t>(l)];
    const BlockPlan plan(block, e_.spec.width);
    const Resume at = resume_points(plan, block);
    const Tensor x = e_.kept[static_cast<size_t>(l)][b].x.detach().requires_grad_();
    SeenHeads heads;
    BlockContext context{plan, weights, e_.batches[b], heads};
    context.differentiated = true;
    BlockState state = block_start(x);
    Tensor written;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      run_step(plan.steps[i], context, state, true);
      if (i + 1 == at.attended) written = state.value;
    }
    e_.flops += e_.block_cost(block, e_.batches[b]);
    std::vector<Tensor> inputs{x};
    if (written.defined()) inputs.push_back(written);
    for (size_t k = 0; k < directions(); ++k) {
      const std::vector<Tensor> g =
          torch::autograd::grad({state.stream}, inputs, {above_[b][k]}, k + 1 < directions(), false, true);
      above_[b][k] = g[0].detach();
      e_.flops += 2 * e_.block_cost(block, e_.batches[b]);
      if (written.defined() && g[1].defined()) file(l, b, k, g[1].detach(), weights, heads.z(), at.scale);
    }
  }

  void file(int64_t l, size_t b, size_t direction, const Tensor& g, const Weights& weights, const Tensor& z,
            double scale) {
    const c10::NoGradGuard no_grad;
    const auto layer = static_cast<size_t>(l);
    if (gradients_ != nullptr && direction < kDraws) gradients_->by_layer[layer][b].push_back(g);
    const Tensor back = g.matmul(weights.get("attn.W_O")).view(z.sizes());    // [N, H, d_v]
    const Tensor each = (back * z).sum(2).to(at::kDouble).mul_(scale).cpu();  // [N, H]
    const Batch& batch = e_.batches[b];
    const auto heads = static_cast<size_t>(z.size(1));
    const size_t samples = e_.tokens_asked.size();
    if (out_.kl[layer].empty()) {
      out_.kl[layer].assign(heads, std::vector<double>(samples, 0.0));
      out_.scores[layer].assign(heads, std::vector<double>(samples * kDraws, 0.0));
      if (has_loss()) out_.loss[layer].assign(heads, std::vector<double>(samples, 0.0));
    }
    for (size_t s = 0; s < batch.samples.size(); ++s) {
      const Tensor sums = each.narrow(0, batch.offsets[s], batch.length(static_cast<int64_t>(s))).sum(0);
      const auto sample = static_cast<size_t>(batch.samples[s]);
      const double rows = static_cast<double>(e_.asked[b].offsets[s + 1] - e_.asked[b].offsets[s]);
      for (size_t h = 0; h < heads; ++h) {
        const double sum = sums.data_ptr<double>()[h];
        if (direction == kDraws) {
          out_.loss[layer][h][sample] = -sum;
        } else if (rows > 0) {
          out_.kl[layer][h][sample] += 0.5 * sum * sum / rows / kDraws;
          out_.scores[layer][h][sample * kDraws + direction] = sum / std::sqrt(rows);
        }
      }
    }
  }

  Evaluator::Impl& e_;
  WriteGradients* gradients_;
  OutputScores scores_;
  std::vector<std::vector<Tensor>> above_;  // by batch, by direction
  HeadEstimates out_;
};

}  // namespace

HeadEstimates estimate_heads(Evaluator& evaluator, WriteGradients* gradients) {
  return Estimator(evaluator.impl(), gradients).run();
}

}  // namespace rankscope
