#include "paths/chained.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "base/published.h"
#include "base/stats.h"
#include "operator/chained.h"
#include "operator/frozen.h"
#include "pass/output.h"

namespace rankscope {
namespace {

constexpr uint32_t kTextStream = 0x74657874;  // "text"
constexpr double kTheirRounding = 3e-6;       // their products are float32, which ends near 1e-6
constexpr const char* kMetric = "path_rank1_distance";

}  // namespace

Finding chained_rate(const std::vector<double>& medians, double floor) {
  size_t last = 0;
  while (last + 1 < medians.size() && medians[last + 1] > floor) ++last;
  const size_t next = last + 1;
  Finding f;
  f.topic = "chained";
  f.known = last > 0;
  f.value = last > 0 ? std::pow(medians[last] / medians[0], 1.0 / static_cast<double>(last)) : kNone;
  const std::string end = next < medians.size()
                              ? fmt::format("; at length {} they are of rank one up to rounding", next + 1)
                              : "";
  f.sentence = f.known ? fmt::format(
                             "each further attention matrix on a path multiplies the distance from rank one "
                             "by {:.2g} (lengths 1 to {}, medians){}",
                             f.value, next, end)
                       : "the chains are too short, or of rank one from the start: there is no rate to give";
  return f;
}

ChainedPaths::ChainedPaths(const PathsRequest& request, const ModelSpec& spec, int64_t texts)
    : request_(request), spec_(spec) {
  const int64_t depth = spec.depth(), heads = spec.blocks.front().attention().heads;
  for (int64_t k = 1; k <= depth; ++k) {
    const Philox random{request.scan.seed, kTextStream, static_cast<uint32_t>(k)};
    uint64_t index = 0;
    for (Path& path : sample_paths(depth, heads, k, request.chains, request.scan.seed, 0))
      draws_.push_back({std::move(path), static_cast<int>(k),
                        static_cast<int64_t>(random.below(static_cast<uint64_t>(texts), index++))});
  }
}

void ChainedPaths::see(const FrozenNetwork& frozen, const Batch& batch) {
  for (int64_t s = 0; s < batch.count(); ++s) {
    std::vector<at::Tensor> patterns;
    for (Draw& draw : draws_) {
      if (draw.text != batch.samples[static_cast<size_t>(s)]) continue;
      if (patterns.empty()) patterns = patterns_of(frozen.trunk(), s);
      draw.distance =
          distance_from_rank_one(chained_attention(patterns, draw.path, request_.reference_order));
    }
  }
}

Finding ChainedPaths::finish(ResultTable& table) {
  const std::string site = hidden_site(spec_);
  const int depth = static_cast<int>(spec_.depth());
  std::vector<double> medians;
  for (int k = 1; k <= depth; ++k) {
    std::vector<double> values;
    for (size_t i = 0; i < draws_.size(); ++i) {
      if (draws_[i].length != k) continue;
      values.push_back(draws_[i].distance);
      table.samples.push_back({"chained",
                               site,
                               -1,
                               -1,
                               kMetric,
                               "all",
                               static_cast<int64_t>(values.size()) - 1,
                               draws_[i].distance,
                               {},
                               k});
    }
    const auto row = [&](const char* metric, double value) {
      table.rows.push_back(
          {"chained", site, -1, -1, metric, value, kNone, static_cast<int64_t>(values.size()), k, "all"});
    };
    medians.push_back(quantile(values, 0.5));
    row(kMetric, medians.back());
    row("path_rank1_distance_q1", quantile(values, 0.25));
    row("path_rank1_distance_q3", quantile(values, 0.75));
  }
  published(table);
  return chained_rate(medians, request_.scan.dtype == "float64" ? 1e-13 : 1e-5);
}

void ChainedPaths::published(ResultTable& table) const {
  const AttentionSpec& a = spec_.blocks.front().attention();
  if (spec_.width != 768 || spec_.depth() != 12 || a.heads != 12) return;  // the size they used
  const char* weights = request_.init.empty() ? "pretrained" : "init";
  for (const auto& row : published_rows("dong2021_chained")) {
    if (row[0] != spec_.architecture || row[1] != weights) continue;
    const int k = static_cast<int>(published_number(row[2]));
    const double theirs = published_number(row[3]);
    double ours = kNone;
    for (const Row& r : table.rows)
      if (r.metric == kMetric && r.depth == k) ours = r.value;
    const std::string site = hidden_site(spec_);
    table.rows.push_back({"chained", site, -1, -1, "path_published", theirs, kNone, 0, k, "all"});
    if (theirs < kTheirRounding) continue;
    table.rows.push_back(
        {"chained", site, -1, -1, "path_published_ratio", ours / theirs, kNone, 0, k, "all"});
  }
}

}  // namespace rankscope
