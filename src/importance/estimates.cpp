#include "importance/estimates.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "base/philox.h"
#include "importance/kept.h"
#include "model/embed_and_unembed.h"
#include "pass/readout.h"
#include "tensors/norm.h"

namespace rankscope {
namespace {

constexpr uint32_t kDraw = 5;         // the stream of random numbers, beside those of pass/ and evaluator.cpp
constexpr int64_t kRowsAtOnce = 256;  // whose logits are whole in memory
constexpr int64_t kTile = 4096;

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
  Estimator(Evaluator::Impl& e, WriteGradients* gradients) : e_(e), gradients_(gradients) {
    const auto depth = static_cast<size_t>(e.spec.depth());
    out_.loss.resize(depth);
    out_.kl.resize(depth);
    out_.scores.resize(depth);
    if (gradients_ != nullptr)
      gradients_->by_layer.assign(depth, std::vector<std::vector<Tensor>>(e.batches.size()));
  }

  HeadEstimates run() {
    for (size_t b = 0; b < e_.batches.size(); ++b) above_.push_back(at_the_top(b));
    for (int64_t l = e_.spec.depth(); l-- > 0;) {
      const Weights weights = e_.block_weights(l);
      for (size_t b = 0; b < e_.batches.size(); ++b) down(l, b, weights);
      if (e_.job.progress) e_.job.progress(e_.spec.depth() - l, e_.spec.depth(), "gradients");
    }
    return std::move(out_);
  }

 private:
  bool has_loss() const { return e_.job.questions.kind != LossKind::none; }
  size_t directions() const { return kDraws + (has_loss() ? 1 : 0); }  // the draws, then the loss

  // The gradients of all directions behind the last block.
  std::vector<Tensor> at_the_top(size_t b) {
    const std::vector<Tensor> read = at_the_readout(b);
    const at::AutoGradMode on(true);
    const Tensor x = e_.last[b].detach().requires_grad_();
    const Tensor h = e_.readable(e_.ended(x, b));
    std::vector<Tensor> out;
    for (size_t k = 0; k < read.size(); ++k)
      out.push_back(torch::autograd::grad({h}, {x}, {read[k]}, k + 1 < read.size()).front().detach());
    return out;
  }

  // What the vocabulary matrix multiplies is h, its logits u, bent to z: with D = dz/du,
  //   d log p(y) / dh = (D W)_y - p^T (D W): one product for all directions, and rows.
  std::vector<Tensor> at_the_readout(size_t b) {
    const c10::NoGradGuard no_grad;
    const Tensor& h = e_.read[b];
    std::vector<Tensor> out(directions());
    for (Tensor& g : out) g = at::zeros_like(h);
    for (int64_t first = 0; first < h.size(0); first += kRowsAtOnce)
      rows(b, first, std::min(kRowsAtOnce, h.size(0) - first), out);
    e_.flops += 2 * e_.readout_cost(b);
    return out;
  }

  void rows(size_t b, int64_t first, int64_t count, std::vector<Tensor>& out) {
    const OutputSpec& o = e_.spec.output;
    const Tensor h = e_.read[b].narrow(0, first, count);
    const Tensor bias = e_.unembed.get_or_none("b_U");
    std::vector<Tensor> tiles;
    each_tile([&](const Tensor& W, int64_t begin) {
      tiles.push_back(capped(at::linear(h, W, bias.defined() ? bias.narrow(0, begin, W.size(0)) : bias), o));
    });
    const Tensor logits = at::cat(tiles, 1);
    tiles.clear();
    const Tensor p = at::softmax(logits, 1);
    const Tensor bend = o.softcap > 0 ? 1 - (logits / o.softcap).square() : Tensor();
    Tensor mean = at::zeros_like(h);
    const Tensor weight = bend.defined() ? p * bend : p;
    each_tile([&](const Tensor& W, int64_t begin) { mean += weight.narrow(1, begin, W.size(0)).matmul(W); });
    const auto score = [&](const Tensor& y) {
      Tensor row = e_.job.source.rows("unembed.W_U", y);
      if (bend.defined()) row = row * bend.gather(1, y.unsqueeze(1));
      return row - mean;
    };
    const Tensor cumulative = p.to(at::kDouble).cumsum(1);
    for (int k = 0; k < kDraws; ++k)
      out[static_cast<size_t>(k)].narrow(0, first, count).copy_(score(drawn(cumulative, k, b, first)));
    if (!has_loss()) return;
    const Tensor ids = e_.asked[b].ids.narrow(0, first, count);
    // Mean over the tokens of a sample that are asked for.
    const Tensor share = shares(b).narrow(0, first, count).to(h.options()).unsqueeze(1);
    out.back().narrow(0, first, count).copy_(-score(ids.clamp_min(0)) * share);
  }

  // A token for each row by the inverse of its distribution: a function of seed, draw, batch and row.
  Tensor drawn(const Tensor& cumulative, int draw, size_t b, int64_t first) const {
    const Philox random{e_.job.seed, kDraw, static_cast<uint32_t>(b * kDraws + static_cast<size_t>(draw))};
    std::vector<double> u(static_cast<size_t>(cumulative.size(0)));
    for (size_t i = 0; i < u.size(); ++i) u[i] = random.uniform(static_cast<uint64_t>(first) + i);
    const Tensor at = at::tensor(u, at::kDouble).to(cumulative.device()).unsqueeze(1);
    const Tensor total = cumulative.narrow(1, cumulative.size(1) - 1, 1);
    return at::searchsorted(cumulative, at * total).squeeze(1).clamp_max(cumulative.size(1) - 1);
  }

  // 1 / the tokens asked for in the sample, zero where nothing is asked.
  Tensor shares(size_t b) const {
    const AskedRows& rows = e_.asked[b];
    const Tensor ids = rows.ids.cpu();
    Tensor out = at::zeros({ids.size(0)}, at::kDouble);
    for (size_t s = 0; s + 1 < rows.offsets.size(); ++s) {
      const int64_t begin = rows.offsets[s], n = rows.offsets[s + 1] - begin;
      if (n == 0) continue;
      const Tensor there = (ids.narrow(0, begin, n) >= 0).to(at::kDouble);
      out.narrow(0, begin, n).copy_(there / there.sum().clamp_min(1));
    }
    return out;
  }

  template <class Call>
  void each_tile(Call call) {
    const int64_t words = e_.spec.output.vocabulary;
    for (int64_t begin = 0; begin < words; begin += kTile)
      call(e_.job.source.row_range("unembed.W_U", begin, std::min(kTile, words - begin)), begin);
  }

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
  std::vector<std::vector<Tensor>> above_;  // by batch, by direction
  HeadEstimates out_;
};

}  // namespace

HeadEstimates estimate_heads(Evaluator& evaluator, WriteGradients* gradients) {
  return Estimator(evaluator.impl(), gradients).run();
}

}  // namespace rankscope
