// Outputs of networks beside the full one's: loss, KL, or the distance of last hidden states.
#include <ATen/ATen.h>

#include "importance/kept.h"
#include "model/embed_and_unembed.h"
#include "pass/readout.h"
#include "tensors/norm.h"

namespace rankscope {

at::Tensor Evaluator::Impl::ended(const at::Tensor& x, size_t batch) const {
  return apply_norm(x, spec.final_norm, final_norm, "").index_select(0, asked[batch].rows);
}

at::Tensor Evaluator::Impl::readable(const at::Tensor& ended) const {
  return spec.output.kind == HeadKind::none ? ended : before_vocabulary(ended, spec, unembed);
}

void Evaluator::Impl::file(const at::Tensor& nll, const at::Tensor& kl, size_t batch, Judged& out) const {
  const AskedRows& rows = asked[batch];
  const at::Tensor kl_here = kl.cpu(), nll_here = nll.defined() ? nll.cpu() : nll;
  const at::Tensor ids = rows.ids.defined() ? rows.ids.cpu() : rows.ids;
  for (size_t s = 0; s < batches[batch].samples.size(); ++s) {
    const auto sample = static_cast<size_t>(batches[batch].samples[s]);
    const int64_t first = rows.offsets[s], count = rows.offsets[s + 1] - first;
    if (count == 0) continue;
    out.kl[sample] = kl_here.narrow(0, first, count).mean().item<double>();
    if (!nll_here.defined() || out.loss.empty() || tokens_asked[sample] == 0) continue;
    const at::Tensor counts = (ids.narrow(0, first, count) >= 0).to(at::kDouble);
    out.loss[sample] = ((nll_here.narrow(0, first, count) * counts).sum() / counts.sum()).item<double>();
  }
}

namespace {

/// Relative distances of last hidden states, by sample.
void file_distances(const at::Tensor& full, const at::Tensor& other, const Batch& batch, Judged& out) {
  const at::Tensor x = full.to(at::kDouble), difference = other.to(at::kDouble) - x;
  for (size_t s = 0; s < batch.samples.size(); ++s) {
    const auto part = [&](const at::Tensor& t) {
      return t.narrow(0, batch.offsets[s], batch.length(static_cast<int64_t>(s))).norm();
    };
    out.kl[static_cast<size_t>(batch.samples[s])] =
        (part(difference) / part(x).clamp_min(1e-300)).item<double>();
  }
}

}  // namespace

std::vector<Judged> Evaluator::Impl::judge(const std::vector<std::vector<at::Tensor>>& by_network) {
  std::vector<Judged> out(by_network.size(), full);
  for (size_t b = 0; b < batches.size(); ++b) {
    std::vector<at::Tensor> states{read[b]};
    for (const std::vector<at::Tensor>& network : by_network) {
      states.push_back(readable(network[b]));
      flops += readout_cost(b);
    }
    if (spec.output.kind == HeadKind::none) {
      for (size_t i = 0; i < out.size(); ++i) file_distances(states[0], states[i + 1], batches[b], out[i]);
      continue;
    }
    const std::vector<RowOutputs> rows = read_rows(job.source, states, asked[b].ids);
    for (size_t i = 0; i < out.size(); ++i) file(rows[i + 1].nll, rows[i + 1].kl, b, out[i]);
  }
  return out;
}

}  // namespace rankscope
