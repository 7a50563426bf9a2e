#include "importance/output_scores.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "base/philox.h"
#include "model/embed_and_unembed.h"

namespace rankscope {
namespace {

constexpr uint32_t kDraw = 5;         // the stream of random numbers, beside those of pass/ and evaluator.cpp
constexpr int64_t kRowsAtOnce = 256;  // whose logits are whole in memory
constexpr int64_t kTile = 4096;

void normal(at::Tensor& to, const Philox& random) {
  at::Tensor here = at::empty(to.sizes(), at::kDouble);
  for (int64_t i = 0; i < here.numel(); ++i)
    here.data_ptr<double>()[i] = random.normal(static_cast<uint64_t>(i));
  to.copy_(here);
}

}  // namespace

using at::Tensor;

uint32_t OutputScores::stream(size_t b, int draw) const {
  return static_cast<uint32_t>(b * static_cast<size_t>(draws_) + static_cast<size_t>(draw));
}

template <class Call>
void OutputScores::each_tile(Call call) {
  const int64_t words = e_.spec.output.vocabulary;
  for (int64_t begin = 0; begin < words; begin += kTile)
    call(e_.job.source.row_range("unembed.W_U", begin, std::min(kTile, words - begin)), begin);
}

// The gradients of all directions behind the last block.
std::vector<Tensor> OutputScores::behind_last_block(size_t b) {
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
std::vector<Tensor> OutputScores::at_the_readout(size_t b) {
  const c10::NoGradGuard no_grad;
  const Tensor& h = e_.read[b];
  std::vector<Tensor> out(directions());
  for (Tensor& g : out) g = at::zeros_like(h);
  if (e_.spec.output.kind == HeadKind::none) {
    for (size_t k = 0; k < out.size(); ++k)
      normal(out[k], {e_.job.seed, kDraw, stream(b, static_cast<int>(k))});
    return out;
  }
  for (int64_t first = 0; first < h.size(0); first += kRowsAtOnce)
    rows(b, first, std::min(kRowsAtOnce, h.size(0) - first), out);
  e_.flops += 2 * e_.readout_cost(b);
  return out;
}

void OutputScores::rows(size_t b, int64_t first, int64_t count, std::vector<Tensor>& out) {
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
  for (int k = 0; k < draws_; ++k)
    out[static_cast<size_t>(k)].narrow(0, first, count).copy_(score(drawn(cumulative, k, b, first)));
  if (!loss_) return;
  const Tensor ids = e_.asked[b].ids.narrow(0, first, count);
  // Mean over the tokens of a sample that are asked for.
  const Tensor share = shares(b).narrow(0, first, count).to(h.options()).unsqueeze(1);
  out.back().narrow(0, first, count).copy_(-score(ids.clamp_min(0)) * share);
}

// A token for each row by the inverse of its distribution: a function of seed, draw, batch and row.
Tensor OutputScores::drawn(const Tensor& cumulative, int draw, size_t b, int64_t first) const {
  const Philox random{e_.job.seed, kDraw, stream(b, draw)};
  std::vector<double> u(static_cast<size_t>(cumulative.size(0)));
  for (size_t i = 0; i < u.size(); ++i) u[i] = random.uniform(static_cast<uint64_t>(first) + i);
  const Tensor at = at::tensor(u, at::kDouble).to(cumulative.device()).unsqueeze(1);
  const Tensor total = cumulative.narrow(1, cumulative.size(1) - 1, 1);
  return at::searchsorted(cumulative, at * total).squeeze(1).clamp_max(cumulative.size(1) - 1);
}

// 1 / the tokens asked for in the sample, zero where nothing is asked.
Tensor OutputScores::shares(size_t b) const {
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

}  // namespace rankscope
