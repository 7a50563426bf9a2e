// What a user would write instead of a scan: the plain forward pass with a hook at the same places, and the
// main metrics there with LibTorch's own operators on the device, all samples at once. Residuals, similarity
// and spectra of tokens (plain and centred) at three places a layer; entropy, received mass and spectra of
// attention. A scan says more: weights' maps, margins, content tokens, what heads write.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "bench/graph.h"
#include "observed_pass.h"
#include "plain_forward.h"
#include "timed_lenses.h"

namespace rankscope {

class PlainMetrics : public PlainObserver {
 public:
  /// Stops at the next place once `limit` seconds have passed.
  PlainMetrics(std::string device, double limit) : device_(std::move(device)), limit_(limit) {}

  void stream(const at::Tensor& x) override {
    if (over()) return;
    const at::Tensor mean = x.mean(1, true), rest = x - mean;
    keep(rest.flatten(1).norm(2, 1) / x.flatten(1).norm(2, 1));
    const at::Tensor unit = x / x.norm(2, -1, true);
    keep(at::matmul(unit, unit.transpose(1, 2)).mean({1, 2}));
    const at::Tensor sigma = singular_values(x);
    keep(effective_rank(sigma));
    keep(sigma.square().sum(-1) / sigma.square().amax(-1));
    keep(effective_rank(singular_values(rest)));
  }
  void pattern(const at::Tensor& p) override {
    if (over()) return;
    keep(-(p * p.clamp_min(1e-30).log()).sum(-1).mean(-1));
    keep(p.sum(2).amax(-1));
    const at::Tensor sigma = singular_values(p);
    if (!first_pattern.defined()) first_pattern = effective_rank(sigma).mean(0);
    keep(effective_rank(sigma));
    keep(sigma.square().sum(-1) / sigma.square().amax(-1));
    ++layers;
  }

  at::Tensor first_pattern;  // effective rank of the heads of the first layer, mean over samples
  int64_t layers = 0;        // measured
  int64_t given_up = 0;      // by gesvda

 private:
  static at::Tensor effective_rank(const at::Tensor& sigma) {
    const at::Tensor p = sigma / sigma.sum(-1, true);
    return at::exp(-(p * p.clamp_min(1e-30).log()).sum(-1));
  }
  // The fastest driver there is for many at once; it wants them tall. Where it gives up, which it does on
  // patterns with many equal singular values, a user is left with the default one.
  at::Tensor singular_values(const at::Tensor& x) {
    const at::Tensor tall = x.size(-2) < x.size(-1) ? x.transpose(-1, -2) : x;
    if (!x.is_cuda()) return at::linalg_svdvals(tall);
    try {
      return at::linalg_svdvals(tall, c10::string_view("gesvda"));
    } catch (const c10::Error&) {
      ++given_up;
      return at::linalg_svdvals(tall);
    }
  }
  void keep(const at::Tensor& numbers) { numbers_.push_back(numbers.cpu()); }
  bool over() {
    finish(device_);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    return passed.count() > limit_;
  }

  std::string device_;
  double limit_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<at::Tensor> numbers_;
};

/// Seconds of it, and whether it measured what a scan does: the rank of the first layer's attention.
inline bool time_plain_metrics(const PlainForward& plain, const at::Tensor& ids, const ResultTable& scanned,
                               const std::string& device, double scan_seconds) {
  constexpr double kLongest = 20;
  PlainMetrics metrics(device, kLongest);
  const double passed = seconds([&] {
    plain.forward(ids, &metrics);
    finish(device);
  });
  if (!metrics.first_pattern.defined()) return true;
  double worst = 0;
  for (const Row& row : scanned.rows)
    if (row.metric.str() == "effective_rank" && row.site.str() == "blocks.0.attn.hook_pattern" &&
        row.head >= 0)
      worst = std::max(worst, std::abs(metrics.first_pattern[row.head].item<double>() / row.value - 1));
  fmt::print(
      "  the same with ATen     {:>9.3f} s{}{}, {:.1f} scans; ranks of the first layer agree to {:.1g}\n",
      passed,
      metrics.layers < plain.depth() ? fmt::format(" for {} of {} layers", metrics.layers, plain.depth())
                                     : std::string(),
      metrics.given_up > 0 ? fmt::format(" (gesvda gave up {} times)", metrics.given_up) : std::string(),
      passed / scan_seconds, worst);
  return worst < 1e-2;
}

}  // namespace rankscope
