#include "studies/support/path_accuracy.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/stats.h"
#include "operator/frozen.h"
#include "operator/paths.h"
#include "theory/path_counts.h"
#include "train/export.h"

namespace rankscope {
namespace {

using at::Tensor;

constexpr const char* kAll = "all";

// The number of a reading like "20"; 0 where it is none.
int64_t number_of(const std::string& reading) {
  int64_t n = 0;
  const char* end = reading.data() + reading.size();
  const auto [at, fault] = std::from_chars(reading.data(), end, n);
  return fault == std::errc() && at == end ? n : 0;
}

// A draw that holds every path is no draw.
bool takes_all(const std::string& reading, int64_t paths, const PathDraws& draws) {
  return reading == kAll || (!draws.replacement && paths <= number_of(reading));
}

}  // namespace

double relative_residual(const Tensor& x, const Batch& batch) {
  std::vector<double> each;
  for (int64_t s = 0; s < batch.count(); ++s) {
    const Tensor X = x.narrow(0, batch.offsets[static_cast<size_t>(s)], batch.length(s));
    each.push_back(((X - X.mean(0, true)).norm() / X.norm()).item<double>());
  }
  return geometric_mean(each).value;
}

void check_reading(Semantics semantics, const std::string& reading) {
  if (semantics == Semantics::frozen) {
    if (reading != "only" && reading != "upto" && reading != "allbut")
      throw unknown_name("reading of frozen paths", reading, {"only", "upto", "allbut"});
  } else if (reading != kAll && number_of(reading) < 1) {
    throw usage_error(fmt::format("there is no number of paths \"{}\"", printable(reading)))
        .hint("reading=5, reading=20 or reading=all");
  }
}

double heads_run(Semantics semantics, const std::string& reading, int64_t length, int64_t layers,
                 int64_t heads, const PathDraws& draws) {
  if (semantics == Semantics::frozen || length == 0) return 0;
  // Of all paths, each begins as one that is a head shorter, which was run for that length.
  const int64_t paths = path_count(layers, heads, length, INT64_MAX);
  if (takes_all(reading, paths, draws)) return static_cast<double>(paths);
  return static_cast<double>(draws.draws) * static_cast<double>(number_of(reading)) *
         static_cast<double>(length);
}

struct PathAccuracy::Impl {
  WeightSource& source;
  PathDraws draws;
  Batch batch;
  Tensor labels, W_U, b_U;
  FrozenNetwork frozen;
  PathRunner runner;
  Tensor lengths;                                       // [L + 1, N, d], filled in when first asked for
  std::vector<double> norms;                            // of single paths, summed by length; the same
  std::map<Semantics, std::vector<double>> everything;  // accuracies of all paths of each length

  Impl(WeightSource& s, Batch b, const PathDraws& d)
      : source(s), draws(d), batch(std::move(b)), frozen(s.spec(), s, batch), runner(s.spec(), s, batch) {
    const OutputSpec& out = s.spec().output;
    W_U = s.row_range("unembed.W_U", 0, out.vocabulary);
    b_U = s.load("unembed").get("b_U");
  }

  double accuracy(const Tensor& logits) const {
    const Tensor asked = labels.ge(0);  // the others are kUnasked
    return (logits.argmax(-1) == labels).masked_select(asked).to(at::kDouble).mean().item<double>();
  }
  double accuracy_of_state(const Tensor& x) const { return accuracy(at::linear(x, W_U, b_U)); }

  PathScore frozen_score(const std::string& reading, int64_t k) {
    if (!lengths.defined()) lengths = path_sums(frozen.trunk(), frozen.input()).sum(2).sum(1);
    PathScore out;
    const Tensor& x = lengths[k];
    if (reading == "only")
      out.accuracy = accuracy(at::linear(x, W_U));
    else if (reading == "upto")
      out.accuracy = accuracy_of_state(frozen.bias() + lengths.narrow(0, 0, k + 1).sum(0));
    else
      out.accuracy = accuracy_of_state(frozen.output() - x);
    out.rms = x.square().mean().sqrt().item<double>();
    out.residual = relative_residual(x, batch);
    out.cancellation = (lengths.flatten(1).norm(2, 1).sum() / lengths.sum(0).norm()).item<double>();
    if (std::pow(1.0 + static_cast<double>(heads()), static_cast<double>(layers())) <= kFollowed) {
      if (norms.empty()) norms = sums_of_path_norms(frozen.trunk(), frozen.input());
      out.path_cancellation = norms[static_cast<size_t>(k)] / x.norm().item<double>();
    }
    out.paths = count(k);
    return out;
  }

  int64_t layers() const { return source.spec().depth(); }
  int64_t heads() const { return source.spec().blocks.front().attention().heads; }
  int64_t count(int64_t k) const { return path_count(layers(), heads(), k, INT64_MAX); }

  PathScore whole_score(Semantics semantics, int64_t k) {
    std::vector<double>& known = everything[semantics];
    if (known.empty())
      for (const Tensor& state : runner.sum_all(semantics)) known.push_back(accuracy_of_state(state));
    return {.accuracy = known[static_cast<size_t>(k)], .paths = count(k)};
  }

  PathScore sampled_score(Semantics semantics, int64_t n, int64_t k) const {
    PathScore out{.paths = n, .draws = draws.draws};
    double sum = 0, squares = 0;
    for (int64_t draw = 0; draw < draws.draws; ++draw) {
      const double a =
          accuracy_of_state(runner.sum(draw_paths(n, k, static_cast<uint32_t>(draw)), semantics));
      sum += a;
      squares += a * a;
    }
    const auto r = static_cast<double>(draws.draws);
    out.accuracy = sum / r;
    out.spread = std::sqrt(std::max(0.0, squares / r - out.accuracy * out.accuracy));
    return out;
  }

  std::vector<Path> draw_paths(int64_t n, int64_t k, uint32_t draw) const {
    if (!draws.replacement) return sample_paths(layers(), heads(), k, n, draws.seed, draw);
    std::vector<Path> out;
    for (int64_t i = 0; i < n; ++i) {
      const auto one = static_cast<uint32_t>(draw * n + i);
      out.push_back(sample_paths(layers(), heads(), k, 1, draws.seed, one).front());
    }
    return out;
  }
};

PathAccuracy::PathAccuracy(WeightSource& source, const TokenSet& set, const PathDraws& draws) {
  const c10::NoGradGuard no_grad;
  Batch batch = make_batches(samples_of(set), source.spec(), set.sequences()).front();
  std::vector<int64_t> labels;
  for (int64_t s = 0; s < batch.count(); ++s) {
    const auto row = set.labels.begin() + batch.samples[static_cast<size_t>(s)] * set.tokens;
    labels.insert(labels.end(), row, row + batch.length(s));
  }
  impl_ = std::make_unique<Impl>(source, std::move(batch), draws);
  impl_->labels = at::tensor(labels, at::kLong);
}

PathAccuracy::~PathAccuracy() = default;

double PathAccuracy::full() const { return impl_->accuracy_of_state(impl_->frozen.output()); }

PathScore PathAccuracy::read(Semantics semantics, const std::string& reading, int64_t length) {
  const c10::NoGradGuard no_grad;
  if (semantics == Semantics::frozen) return impl_->frozen_score(reading, length);
  if (takes_all(reading, impl_->count(length), impl_->draws)) return impl_->whole_score(semantics, length);
  return impl_->sampled_score(semantics, number_of(reading), length);
}

}  // namespace rankscope
