#include <cmath>
#include <map>
#include <tuple>

#include "base/stats.h"
#include "collapse/parts.h"
#include "pass/stream_metrics.h"

namespace rankscope {
namespace {

double variance(std::span<const double> x) {
  const Estimate e = arithmetic_mean(x);
  return e.stderr_ * e.stderr_ * static_cast<double>(x.size());
}

}  // namespace

ResultTable over_networks(const std::vector<ResultTable>& tables, int64_t texts) {
  ResultTable out;
  using Key = std::tuple<Name, Name, int, int, Name, int, Name>;
  std::map<Key, size_t> places;
  std::vector<std::vector<double>> values;
  for (size_t k = 0; k < tables.size(); ++k) {
    for (const Row& r : tables[k].rows) {
      const auto [it, fresh] = places.emplace(
          Key(r.variant, r.site, r.layer, r.head, r.metric, r.depth, r.tokens), out.rows.size());
      if (fresh) {
        out.rows.push_back(r);
        values.emplace_back();
      }
      values[it->second].push_back(r.value);
    }
    for (SampleRow s : tables[k].samples) {
      s.sample += static_cast<int64_t>(k) * texts;
      out.samples.push_back(s);
    }
  }
  for (size_t i = 0; i < out.rows.size(); ++i) {
    Row& r = out.rows[i];
    const Estimate e =
        mean_of(r.metric.str()) == Mean::geometric ? geometric_mean(values[i]) : arithmetic_mean(values[i]);
    r.value = e.value;
    r.stderr_ = e.stderr_;
    r.n = static_cast<int64_t>(values[i].size());
  }
  return out;
}

Spread spread_of(const ResultTable& table, const std::string& variant, int depth, int64_t texts) {
  std::map<int64_t, std::vector<double>> by_network;
  const Name name(variant), site(collapse_site(depth));
  for (const SampleRow& s : table.samples)
    if (s.variant == name && s.site == site && s.metric == "residual_l1inf_rel" && s.tokens == "all")
      by_network[s.sample / texts].push_back(s.value);
  Spread out;
  std::vector<double> means, variances;
  for (const auto& [network, values] : by_network) {
    means.push_back(arithmetic_mean(values).value);
    variances.push_back(variance(values));
  }
  if (means.empty()) return out;
  // Texts of one network are no independent draws of the experiment where there are several networks.
  const std::vector<double>& draws = means.size() > 1 ? means : by_network.begin()->second;
  out.mean = arithmetic_mean(draws);
  out.draws = static_cast<int64_t>(draws.size());
  out.texts_sd = std::sqrt(arithmetic_mean(variances).value);
  out.networks_sd = std::sqrt(variance(means));
  return out;
}

}  // namespace rankscope
