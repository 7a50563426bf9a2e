#include "paths/sampled.h"

#include "base/stats.h"
#include "operator/frozen.h"
#include "pass/output.h"
#include "pass/stream_metrics.h"
#include "theory/path_counts.h"

namespace rankscope {

void SampledPaths::see(const Batch& batch) {
  const int64_t depth = spec_.depth(), heads = spec_.blocks.front().attention().heads;
  const PathRunner runner(spec_, source_, batch);
  const at::Tensor full =
      spec_.output.kind == HeadKind::none ? at::Tensor() : FrozenNetwork(spec_, source_, batch).output();
  for (int64_t k = 0; k <= depth; ++k) {
    exhaustive_[k] = path_count(depth, heads, k, request_.paths + 1) <= request_.paths;
    const int64_t draws = exhaustive_[k] ? 1 : request_.repeats;
    draws_[k].resize(static_cast<size_t>(draws));
    std::vector<at::Tensor> states;
    for (int64_t draw = 0; draw < draws; ++draw) {
      states.push_back(runner.sum(
          sample_paths(depth, heads, k, request_.paths, request_.scan.seed, static_cast<uint32_t>(draw)),
          semantics_));
      StreamMetrics reading({}, {}, spec_);
      reading.see(states.back(), batch);
      ResultTable read;
      reading.finish(read);
      for (const SampleRow& r : read.samples)  // every sample's value: the draws are averaged later
        draws_[k][static_cast<size_t>(draw)][{r.metric.str(), r.tokens.str()}].push_back(r.value);
    }
    if (!full.defined()) continue;
    const auto kl = output_kl(full, states, spec_, source_, batch);
    for (size_t draw = 0; draw < kl.size(); ++draw)
      for (const double value : kl[draw]) draws_[k][draw][{"output_kl", "all"}].push_back(value);
  }
}

void SampledPaths::finish(ResultTable& table, std::vector<std::string>& notes) {
  const std::string site = hidden_site(spec_);
  for (const auto& [k, draws] : draws_)
    for (const auto& [key, first] : draws.front()) {
      std::vector<double> means;
      for (const Values& values : draws) {
        const auto it = values.find(key);
        if (it == values.end()) continue;
        means.push_back(
            (mean_of(key.first) == Mean::geometric ? geometric_mean(it->second) : arithmetic_mean(it->second))
                .value);
      }
      const Estimate e = arithmetic_mean(means);
      table.rows.push_back({request_.semantics, site, -1, -1, key.first, e.value,
                            exhaustive_.at(k) ? 0.0 : e.stderr_, static_cast<int64_t>(means.size()),
                            static_cast<int32_t>(k), key.second});
    }
  notes.push_back(
      fmt::format("{} draws of {} different paths of each length, all of them where there are no more",
                  request_.repeats, request_.paths));
}

}  // namespace rankscope
