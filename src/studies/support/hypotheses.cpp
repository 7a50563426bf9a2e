#include "studies/support/hypotheses.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "base/stats.h"
#include "base/table.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "operator/attention_bound.h"
#include "operator/split.h"
#include "theory/collapse_bound.h"
#include "train/export.h"

namespace rankscope {
namespace {

using at::Tensor;

constexpr double kGeluSlope = 1.1290;  // gelu'(sqrt 2) = 1.12890..., the largest there is
constexpr double kSameAnswers = 1e-9;  // nats: answers that differ by less have no differences to be of use
constexpr double kFlat = 1e-3;         // of log r: a fall by less says nothing about the next one

double composite_norm(const Tensor& a) {
  const Tensor b = a.abs();
  return std::sqrt(b.sum(0).max().item<double>() * b.sum(1).max().item<double>());
}

// Lipschitz constant of W_out gelu(W_in x) in the composite norm, at most.
double mlp_lipschitz(const BlockSpec& block, const Weights& w) {
  const BranchSpec* mlp = block.mlp_branch();
  return mlp == nullptr ? 1.0
                        : mlp->scale * kGeluSlope * composite_norm(w.get("mlp.W_in")) *
                              composite_norm(w.get("mlp.W_out"));
}

Batch single_tokens(int64_t count) {
  Batch b;
  for (int64_t s = 0; s <= count; ++s) b.offsets.push_back(s);
  b.samples.resize(static_cast<size_t>(count));
  std::iota(b.samples.begin(), b.samples.end(), int64_t{0});
  b.positions.assign(static_cast<size_t>(count), 0);
  b.types = b.positions;
  b.content.assign(static_cast<size_t>(count), 1);
  return b;
}

class Hypotheses {
 public:
  Hypotheses(const ModelSpec& spec, WeightSource& source) : spec_(spec), source_(source) {
    for (const BlockSpec& block : spec.blocks)
      weights_.push_back(source.load(fmt::format("blocks.{}", block.weights)));
    W_U_ = source.row_range("unembed.W_U", 0, spec.output.vocabulary);
    b_U_ = source.load("unembed").get_or_none("b_U");
    seen_.resize(weights_.size() + 1);
    means_.resize(weights_.size() + 1);
  }

  void add(const Batch& one) {
    SplitTokens tokens(embed(one, spec_, source_.load("embed"), source_));
    for (size_t l = 0; l < seen_.size(); ++l) {
      if (l > 0) through(tokens, l, one);
      const SplitResidual r = tokens.residual();
      seen_[l]["log_residual"].push_back(r.log_l1inf_rel);
      seen_[l]["residual"].push_back(std::exp(r.log_l1inf_rel));
      seen_[l]["log_spread"].push_back(r.log_fro_rel);
      means_[l].push_back(tokens.common());
    }
    answers_.push_back(log_answers(tokens.whole()));
  }

  std::vector<Readings> readings() const {
    std::vector<Readings> out(seen_.size());
    for (size_t l = 0; l < seen_.size(); ++l) {
      put(out[l], "residual_log10", mean_log(l) * std::numbers::log10e);
      put(out[l], "residual", mean(l, "residual"));
      put(out[l], "spread", std::exp(mean(l, "log_spread")));
      if (l > 0) {
        put(out[l], "oscillation", mean(l, "oscillation"));
        put(out[l], "holds", mean(l, "holds"));
        put(out[l], "margin", std::exp(mean(l, "log_margin")));
        put(out[l], "lambda", mean(l, "lambda"));
        put(out[l], "lambda_allowed", std::exp(-2 * mean(l, "log_margin")));
      }
      if (l > 1 && std::abs(mean_log(l - 1) - mean_log(l - 2)) > kFlat)
        put(out[l], "local_exponent", (mean_log(l) - mean_log(l - 1)) / (mean_log(l - 1) - mean_log(l - 2)));
      put(out[l], "use", use(l));
    }
    return out;
  }

 private:
  void through(SplitTokens& tokens, size_t l, const Batch& one) {
    const BlockSpec& block = spec_.blocks[l - 1];
    const AttentionBound b = attention_bound(tokens, block.attention(), weights_[l - 1]);
    seen_[l]["oscillation"].push_back(b.spread);
    seen_[l]["holds"].push_back(b.spread <= kSpreadLimit);
    seen_[l]["log_margin"].push_back(0.5 * std::log(b.c) + b.log_residual);
    seen_[l]["lambda"].push_back(mlp_lipschitz(block, weights_[l - 1]));
    tokens.advance(block, weights_[l - 1], one);
  }

  Tensor log_answers(const Tensor& x) const { return at::log_softmax(at::linear(x, W_U_, b_U_), -1); }

  // One token has attention for itself alone, as each of many equal ones has for all of them.
  Tensor without_differences(size_t l) const {
    Tensor x = at::stack(means_[l]);
    const Batch batch = single_tokens(x.size(0));
    BlockObserver nobody;
    for (; l + 1 < seen_.size(); ++l)
      x = run_block(x, {BlockPlan(spec_.blocks[l], spec_.width), weights_[l], batch, nobody});
    return log_answers(x);
  }

  double use(size_t l) const {
    const Tensor log_p = at::stack(answers_), p = log_p.exp();  // [S, T, classes]
    const auto divergence = [&](const Tensor& log_q) {
      return (p * (log_p - log_q)).sum(-1).mean().item<double>();
    };
    const double whole = divergence(p.flatten(0, 1).mean(0).log());
    return whole > kSameAnswers ? divergence(without_differences(l).unsqueeze(1)) / whole : kNone;
  }

  double mean(size_t l, const std::string& name) const { return arithmetic_mean(seen_[l].at(name)).value; }
  double mean_log(size_t l) const { return mean(l, "log_residual"); }
  static void put(Readings& out, const char* name, double value) {
    if (std::isfinite(value)) out[name] = value;
  }

  const ModelSpec& spec_;
  WeightSource& source_;
  std::vector<Weights> weights_;
  Tensor W_U_, b_U_;
  std::vector<std::map<std::string, std::vector<double>>> seen_;  // by depth
  std::vector<std::vector<Tensor>> means_;                        // by depth, of every sequence: [d]
  std::vector<Tensor> answers_;                                   // log of shares, [T, classes]
};

}  // namespace

std::vector<Readings> read_hypotheses(const ModelSpec& spec, WeightSource& source, const TokenSet& set,
                                      int64_t sequences) {
  const c10::NoGradGuard no_grad;
  std::vector<Sample> samples = samples_of(set);
  samples.resize(std::min(samples.size(), static_cast<size_t>(sequences)));
  Hypotheses all(spec, source);
  for (const Batch& one : make_batches(samples, spec, 1)) all.add(one);
  return all.readings();
}

}  // namespace rankscope
