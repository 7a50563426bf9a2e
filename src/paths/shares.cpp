#include "paths/shares.h"

#include <fmt/format.h>

#include <algorithm>

#include "operator/frozen.h"
#include "operator/paths.h"
#include "parts/parameters.h"
#include "pass/output.h"
#include "pass/stream_metrics.h"

namespace rankscope {
namespace {

constexpr double kCheap = 2e10;            // multiplications: about a second of one core
constexpr int64_t kMostWeights = 1 << 28;  // the frozen network holds all blocks at once

int64_t weights_of_blocks(const ModelSpec& spec) {
  int64_t sum = 0;
  for (const Parameter& p : parameters(spec))
    if (p.name.starts_with("blocks.")) sum += element_count(p);
  return sum;
}

}  // namespace

void add_path_shares(const ModelSpec& spec, WeightSource& source, const Batch& sample, int64_t tokens,
                     ResultTable& table, std::vector<std::string>& notes) {
  const int64_t weights = weights_of_blocks(spec);
  const auto once = static_cast<double>(weights) / static_cast<double>(spec.stored_blocks) *
                    static_cast<double>(spec.depth());  // multiplications for one token
  // Block l is applied to the l + 1 sums that reach it.
  const double cost =
      once * static_cast<double>(sample.length(0)) * static_cast<double>(spec.depth() + 1) / 2;
  if (weights > kMostWeights || cost > std::max(kCheap, once * static_cast<double>(tokens))) {
    notes.emplace_back("paths by length were left out, being dearer than the scan: rankscope paths has them");
    return;
  }
  const FrozenNetwork frozen(spec, source, sample);
  const at::Tensor sums = path_sums(frozen.trunk(), frozen.input()).sum(2).sum(1);  // [lengths, N, d]
  std::vector<double> norms;
  const double bias = rms_by_sample(frozen.bias(), sample).front();
  double total = bias;
  for (int64_t k = 0; k < sums.size(0); ++k) {
    norms.push_back(rms_by_sample(sums[k], sample).front());
    total += norms.back();
  }
  const std::string site = hidden_site(spec);
  const auto row = [&](int32_t length, const char* metric, double value) {
    table.rows.push_back({"full", site, -1, -1, metric, value, kNone, 1, length, "all"});
    table.samples.push_back({"full", site, -1, -1, metric, "all", sample.samples.front(), value, {}, length});
  };
  for (size_t k = 0; k < norms.size(); ++k) {
    row(static_cast<int32_t>(k), "path_norm", norms[k]);
    row(static_cast<int32_t>(k), "path_share", total > 0 ? norms[k] / total : kNone);
  }
  row(-1, "path_share_bias", total > 0 ? bias / total : kNone);  // with the others it makes 1
}

}  // namespace rankscope
