#include "lenses/support/tokens.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows.h"
#include "lenses/support/host.h"
#include "lenses/support/median.h"
#include "lenses/support/numbers.h"
#include "spectral/batch.h"

namespace rankscope {
namespace {

/// One sample's tokens, loaded into a buffer that the thread keeps.
class Sample {
 public:
  Sample(const at::Tensor& x, const Packing& packing, int64_t s)
      : x_(x), first_(packing.offsets[static_cast<size_t>(s)]), count_(packing.length(s)), width_(x.size(1)) {
    Tokens all = everything();
    std::vector<double> norms(static_cast<size_t>(count_));
    for (int64_t i = 0; i < count_; ++i)
      norms[static_cast<size_t>(i)] = std::sqrt(kernels::sum_squares(all.x + i * width_, width_));
    const std::vector<uint8_t> massive = above_median(norms);
    for (int64_t i = 0; i < count_; ++i) {
      if (!packing.content[static_cast<size_t>(first_ + i)]) continue;
      if (massive[static_cast<size_t>(i)])
        ++massive_;
      else
        content_.push_back(i);
    }
  }

  // A buffer that long texts need is not one to keep.
  ~Sample() {
    constexpr size_t kKept = size_t{2} << 20;
    if (buffer().size() > kKept) std::vector<double>().swap(buffer());
  }
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  Tokens everything() {
    buffer().resize(static_cast<size_t>(count_ * width_));
    load(x_, first_ * width_, count_ * width_, buffer().data());
    return {buffer().data(), count_, width_, epsilon_of(x_)};
  }
  Tokens content() {
    const auto kept = static_cast<int64_t>(content_.size());
    buffer().resize(static_cast<size_t>(kept * width_));
    for (int64_t i = 0; i < kept; ++i)
      load(x_, (first_ + content_[static_cast<size_t>(i)]) * width_, width_, buffer().data() + i * width_);
    return {buffer().data(), kept, width_, epsilon_of(x_)};
  }
  bool has_content() const { return content_.size() >= 2; }
  bool content_is_everything() const { return static_cast<int64_t>(content_.size()) == count_; }
  int64_t massive() const { return massive_; }

 private:
  static std::vector<double>& buffer() {
    thread_local std::vector<double> kept;
    return kept;
  }

  const at::Tensor& x_;
  int64_t first_, count_, width_, massive_ = 0;
  std::vector<int64_t> content_;
};

constexpr int64_t kAll = 0, kContent = 1, kRules = 2;  // as Measurement orders them

}  // namespace

std::vector<SiteUse> residual_sites() {
  return {{"blocks.0.hook_resid_pre", SiteForm::whole},
          {"ln1.hook_normalized", SiteForm::whole},
          {"hook_resid_post", SiteForm::whole},
          {"ln_final.hook_normalized", SiteForm::whole}};
}

at::Tensor measure_tokens(const WholeView& view, size_t metrics, const TokenMeasure& measure) {
  const at::Tensor x = host(view.x);
  Numbers numbers(view.packing.count(), 0, metrics, kRules);
  parallel_over(view.packing.count(), [&](int64_t s) {
    Sample sample(x, view.packing, s);
    measure(sample.everything(), numbers.of(s, 0, kAll));
    if (!sample.has_content()) return;
    if (sample.content_is_everything())
      std::copy_n(numbers.of(s, 0, kAll), metrics, numbers.of(s, 0, kContent));
    else
      measure(sample.content(), numbers.of(s, 0, kContent));
  });
  return numbers.tensor();
}

size_t token_slots(const WholeView& view) { return 2 * static_cast<size_t>(view.packing.count()); }

at::Tensor measure_tokens(const WholeView& view, size_t metrics, const TokenSteps& steps) {
  const at::Tensor x = host(view.x);
  constexpr size_t none = std::numeric_limits<size_t>::max();
  const auto samples = static_cast<size_t>(view.packing.count());
  std::vector<size_t> content_slot(samples, none);
  parallel_over(view.packing.count(), [&](int64_t s) {
    const auto at = static_cast<size_t>(s);
    Sample sample(x, view.packing, s);
    steps.look(sample.everything(), 2 * at);
    if (!sample.has_content()) return;
    content_slot[at] = sample.content_is_everything() ? 2 * at : 2 * at + 1;
    if (content_slot[at] != 2 * at) steps.look(sample.content(), content_slot[at]);
  });
  steps.finish();
  Numbers numbers(view.packing.count(), 0, metrics, kRules);
  parallel_over(view.packing.count(), [&](int64_t s) {
    const auto at = static_cast<size_t>(s);
    steps.read(2 * at, numbers.of(s, 0, kAll));
    if (content_slot[at] == 2 * at)
      std::copy_n(numbers.of(s, 0, kAll), metrics, numbers.of(s, 0, kContent));
    else if (content_slot[at] != none)
      steps.read(content_slot[at], numbers.of(s, 0, kContent));
  });
  return numbers.tensor();
}

at::Tensor measure_content(const WholeView& view, size_t metrics, const ContentSteps& steps) {
  const at::Tensor x = host(view.x);
  Numbers numbers(view.packing.count(), 0, metrics, kRules);
  std::vector<uint8_t> seen(static_cast<size_t>(view.packing.count()), 0);
  parallel_over(view.packing.count(), [&](int64_t s) {
    Sample sample(x, view.packing, s);
    if (!sample.has_content()) return;
    seen[static_cast<size_t>(s)] = 1;
    steps.look(sample.content(), sample.massive(), static_cast<size_t>(s), numbers.of(s, 0, kContent));
  });
  steps.finish();
  for (int64_t s = 0; s < view.packing.count(); ++s)
    if (seen[static_cast<size_t>(s)]) steps.read(static_cast<size_t>(s), numbers.of(s, 0, kContent));
  return numbers.tensor();
}

}  // namespace rankscope
