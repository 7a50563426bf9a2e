#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/stats.h"
#include "collapse/parts.h"
#include "model/embed_and_unembed.h"
#include "operator/split.h"

namespace rankscope {
namespace {

constexpr double kTenth = std::numbers::log10e;  // natural to decimal logarithms

// Logarithms of one variant's residuals at one depth, sample by sample.
struct Logs {
  std::vector<double> l1inf, l1inf_rel, fro, fro_rel;
  void add(const SplitResidual& r, const std::string& variant, int depth) {
    if (std::isnan(r.log_l1inf_rel) || r.log_l1inf == INFINITY)
      throw Error("the activations hold NaN or Inf").in(fmt::format("{}, {}", variant, collapse_site(depth)));
    l1inf.push_back(r.log_l1inf);
    l1inf_rel.push_back(r.log_l1inf_rel);
    fro.push_back(r.log_fro);
    fro_rel.push_back(r.log_fro_rel);
  }
};

void write(const std::string& variant, int depth, const Logs& logs, const std::vector<Batch>& batches,
           ResultTable& table) {
  const auto row = [&](const char* metric, const Estimate& e, size_t n) {
    table.rows.push_back({variant, collapse_site(depth), collapse_layer(depth), -1, metric, e.value,
                          e.stderr_, static_cast<int64_t>(n), depth, "all"});
  };
  const auto geometric = [&](const char* metric, const std::vector<double>& values) {
    const Estimate mean = arithmetic_mean(finite_logs(values));
    row(metric, {std::exp(mean.value), mean.stderr_ * std::exp(mean.value)}, values.size());
    for (size_t s = 0; s < values.size(); ++s)
      table.samples.push_back({variant,
                               collapse_site(depth),
                               collapse_layer(depth),
                               -1,
                               metric,
                               "all",
                               batches[s].samples.front(),
                               std::exp(values[s]),
                               {},
                               depth});
  };
  geometric("residual_l1inf", logs.l1inf);
  geometric("residual_l1inf_rel", logs.l1inf_rel);
  geometric("residual_fro", logs.fro);
  geometric("residual_fro_rel", logs.fro_rel);
  const Estimate mean = arithmetic_mean(finite_logs(logs.l1inf_rel));
  row("residual_l1inf_rel_log10", {mean.value * kTenth, mean.stderr_ * kTenth}, logs.l1inf_rel.size());
}

}  // namespace

void split_curves(const std::vector<CollapseVariant>& variants, WeightSource& source,
                  const std::vector<Batch>& batches, ResultTable& table, const ProgressCallback& progress) {
  const ModelSpec& spec = source.spec();
  const Weights embedding = source.load("embed");
  std::vector<std::vector<SplitTokens>> states(variants.size());
  std::vector<Logs> logs(variants.size());
  for (size_t v = 0; v < variants.size(); ++v) {
    for (const Batch& batch : batches) {
      states[v].emplace_back(embed(batch, variants[v].spec, embedding, source));
      logs[v].add(states[v].back().residual(), variants[v].name, 0);
    }
    write(variants[v].name, 0, logs[v], batches, table);
  }
  const auto total = static_cast<int64_t>(spec.depth()) * static_cast<int64_t>(variants.size());
  int64_t done = 0;
  for (int l = 0; l < static_cast<int>(spec.depth()); ++l) {
    const Weights weights =
        source.load(fmt::format("blocks.{}", spec.blocks[static_cast<size_t>(l)].weights));
    for (size_t v = 0; v < variants.size(); ++v) {
      logs[v] = {};
      for (size_t b = 0; b < batches.size(); ++b) {
        states[v][b].advance(variants[v].spec.blocks[static_cast<size_t>(l)], weights, batches[b]);
        logs[v].add(states[v][b].residual(), variants[v].name, l + 1);
      }
      write(variants[v].name, l + 1, logs[v], batches, table);
      if (progress) progress(++done, total, fmt::format("block {}, {}", l + 1, variants[v].name));
    }
  }
}

}  // namespace rankscope
