#include "lenses/support/on_device.h"

#include <ATen/ATen.h>

#include <cmath>
#include <list>

#include "kernels/cuda/pattern.h"
#include "kernels/cuda/residual.h"
#include "lenses/support/median.h"
#include "ops/fused.h"
#include "ops/stream.h"
#include "spectral/batch.h"
#include "tensors/device.h"

namespace rankscope {
namespace {

thread_local int always = 0;

at::Tensor nan_like(const at::Tensor& x) { return at::full({}, kNone, x.options()); }

/// Where the rows of a padded batch come from. Made once for a batch: every lens at every site asks again.
struct Layout {
  std::vector<int64_t> offsets;
  std::vector<uint8_t> content_of;
  c10::Device device;
  bool even;           // all samples of one length: padding is a view
  at::Tensor index;    // [S * T] long, row 0 where there is no token
  at::Tensor present;  // [S, T] double
  at::Tensor content;  // [S, T] double
  at::Tensor lengths;  // [S] double
  DeviceEvent made = {};
};

Layout make_layout(const Packing& p, c10::Device device) {
  const int64_t samples = p.count();
  int64_t longest = 0;
  for (int64_t s = 0; s < samples; ++s) longest = std::max(longest, p.length(s));
  std::vector<int64_t> index(static_cast<size_t>(samples * longest), 0);
  std::vector<double> present(index.size(), 0.0), content(index.size(), 0.0), lengths;
  bool even = true;
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t first = p.offsets[static_cast<size_t>(s)];
    even = even && p.length(s) == longest;
    lengths.push_back(static_cast<double>(p.length(s)));
    for (int64_t i = 0; i < p.length(s); ++i) {
      const auto at = static_cast<size_t>(s * longest + i);
      index[at] = first + i;
      present[at] = 1;
      content[at] = p.content[static_cast<size_t>(first + i)] != 0 ? 1 : 0;
    }
  }
  const auto there = [&](const auto& values, at::ScalarType type) {
    return sent(at::tensor(values, type), device);
  };
  return {{p.offsets.begin(), p.offsets.end()},
          {p.content.begin(), p.content.end()},
          device,
          even,
          there(index, at::kLong),
          there(present, at::kDouble).view({samples, longest}),
          there(content, at::kDouble).view({samples, longest}),
          there(lengths, at::kDouble)};
}

/// As it is used by the stream at hand, which need not be the one that made it.
const Layout& here(const Layout& layout) {
  layout.made.hold_back(layout.index);
  for (const at::Tensor* t : {&layout.index, &layout.present, &layout.content, &layout.lengths})
    used_here(*t);
  return layout;
}

const Layout& layout_of(const Packing& p, c10::Device device) {
  constexpr size_t kKept = 16;
  thread_local std::list<Layout> known;
  for (auto it = known.begin(); it != known.end(); ++it)
    if (it->device == device &&
        std::equal(it->offsets.begin(), it->offsets.end(), p.offsets.begin(), p.offsets.end()) &&
        std::equal(it->content_of.begin(), it->content_of.end(), p.content.begin(), p.content.end())) {
      known.splice(known.begin(), known, it);
      return here(known.front());
    }
  known.push_front(make_layout(p, device));
  known.front().made.record(known.front().index);
  if (known.size() > kKept) known.pop_back();
  return known.front();
}

at::Tensor padded(const at::Tensor& x, const Layout& layout) {
  std::vector<int64_t> shape{layout.present.size(0), layout.present.size(1)};
  shape.insert(shape.end(), x.sizes().begin() + 1, x.sizes().end());
  if (layout.even) return x.reshape(shape);
  const at::Tensor rows = x.index_select(0, layout.index).reshape(shape);
  std::vector<int64_t> ones(shape.size(), 1);
  ones[0] = shape[0], ones[1] = shape[1];
  return rows * layout.present.to(x.scalar_type()).reshape(ones);
}

/// All tokens, and the content ones without massive tokens.
struct BothRules {
  PaddedTokens all, content;
  at::Tensor massive;  // [S]
};

BothRules both_rules(const WholeView& view) {
  const Layout& layout = layout_of(view.packing, view.x.device());
  const at::Tensor x = padded(view.x.detach(), layout).to(at::kDouble);
  const double epsilon = epsilon_of(view.x);
  const at::Tensor massive = above_median_of(x.square().sum(-1).sqrt()) * layout.content;
  const at::Tensor kept = layout.content - massive;
  return {{x, layout.present, layout.lengths, epsilon},
          {x * kept.unsqueeze(-1), kept, kept.sum(-1), epsilon},
          massive.sum(-1)};
}

/// NaN for samples with fewer than two content tokens.
at::Tensor with_two(const at::Tensor& numbers, const at::Tensor& count) {
  return at::where((count >= 2).unsqueeze(-1), numbers, nan_like(numbers));
}

at::Tensor composed_entropy(const at::Tensor& p, int64_t first_row, const Mask& mask) {
  std::vector<double> weights;
  for (int64_t i = first_row; i < first_row + p.size(2); ++i)
    weights.push_back(mask.keys(i) > 1 ? 1.0 / std::log(static_cast<double>(mask.keys(i))) : 0.0);
  const at::Tensor rows = at::special_entr(p.clamp_min(0)).sum(-1);
  return (rows * sent(at::tensor(weights, at::kDouble), p.device())).sum(-1);
}

}  // namespace

bool stays_on_device(const at::Tensor& x, bool exact) {
  if (exact && x.scalar_type() == at::kDouble) return false;
  return x.is_cuda() || always > 0;
}

AsOnDevice::AsOnDevice() { ++always; }
AsOnDevice::~AsOnDevice() { --always; }

at::Tensor sent(const at::Tensor& host, c10::Device device) {
  if (!device.is_cuda()) return host;
  return host.pin_memory().to(device, /*non_blocking=*/true);
}

at::Tensor PaddedTokens::mean() const { return x.sum(1) / count.unsqueeze(-1); }

at::Tensor PaddedTokens::centered(const at::Tensor& mean) const {
  return (x - mean.unsqueeze(1)) * kept.unsqueeze(-1);
}

at::Tensor measure_padded(const WholeView& view, const PaddedMeasure& measure) {
  const BothRules rules = both_rules(view);
  const at::Tensor content = with_two(measure(rules.content), rules.content.count);
  return at::stack({measure(rules.all), content}).unsqueeze(2);
}

at::Tensor measure_padded_content(const WholeView& view, const PaddedContentMeasure& measure) {
  const BothRules rules = both_rules(view);
  const at::Tensor content = with_two(measure(rules.content, rules.massive), rules.content.count);
  return at::stack({at::full_like(content, kNone), content}).unsqueeze(2);
}

at::Tensor fused_residuals(const WholeView& view) {
  const at::Tensor& x = view.x;
  if (!x.is_cuda() || !fused_for(x) || x.dim() != 2) return {};
  const Layout& layout = layout_of(view.packing, x.device());
  const cuda::ResidualShape shape{layout.present.size(0), layout.present.size(1), x.size(1), kMassive};
  if (!cuda::residual_fits(shape)) return {};
  const at::Tensor tokens = x.detach().contiguous();
  const at::Tensor out =
      at::empty({cuda::kResidualRules, shape.samples, 1, cuda::kResidualNumbers}, layout.present.options());
  cuda::residuals(shape, tokens.data_ptr<float>(), layout.index.data_ptr<int64_t>(),
                  layout.present.data_ptr<double>(), layout.content.data_ptr<double>(),
                  out.data_ptr<double>(), current_stream(x));
  return out;
}

PaddedRows padded_rows(const at::Tensor& x, const Packing& packing) {
  const Layout& layout = layout_of(packing, x.device());
  return {padded(x.detach(), layout), layout.lengths, layout.present};
}

at::Tensor middle_of_sorted(const at::Tensor& sorted, const at::Tensor& count) {
  const at::Tensor number = count.to(at::kLong).unsqueeze(-1);
  const at::Tensor upper = number.div(2, "floor").clamp_max(sorted.size(-1) - 1),
                   lower = (number - 1).div(2, "floor").clamp_min(0);
  return 0.5 * (sorted.gather(-1, lower).to(at::kDouble) + sorted.gather(-1, upper)).squeeze(-1);
}

at::Tensor above_median_of(const at::Tensor& values) {
  const at::Tensor positive = values > 0;
  const at::Tensor last = at::where(positive, values, at::full({}, INFINITY, values.options()));
  const at::Tensor limit = kMassive * middle_of_sorted(std::get<0>(last.sort(-1)), positive.sum(-1));
  return (values > limit.unsqueeze(-1)).to(values.scalar_type());
}

PatternSums pattern_sums(const at::Tensor& tile, int64_t first_row, const Mask& mask) {
  const int64_t samples = tile.size(0), heads = tile.size(1), rows = tile.size(2), keys = tile.size(3);
  if (!tile.is_cuda() || !fused_for(tile)) {
    const at::Tensor p = tile.detach().to(at::kDouble);
    return {composed_entropy(p, first_row, mask), p.sum(2)};
  }
  const at::Tensor p = tile.detach().contiguous();
  const cuda::PatternTile shape{samples * heads, rows, keys, first_row, mask.causal, mask.window};
  const int64_t segments = cuda::pattern_segments(shape);
  const auto options = p.options().dtype(at::kDouble);
  const at::Tensor entropy = at::empty({samples, heads, segments}, options),
                   received = at::empty({samples, heads, segments, keys}, options);
  cuda::pattern_sums(shape, p.data_ptr<float>(), entropy.data_ptr<double>(), received.data_ptr<double>(),
                     current_stream(p));
  return {entropy.sum(2), received.sum(2)};
}

at::Tensor of_heads(const at::Tensor& numbers) {
  const at::Tensor together = at::full({numbers.size(0), 1, numbers.size(2)}, kNone, numbers.options());
  return at::cat({numbers, together}, 1).unsqueeze(0);
}

at::Tensor head_totals(const at::Tensor& values, const at::Tensor& errors, const at::Tensor& samples,
                       const at::Tensor& whole) {
  const at::Tensor heads = at::stack({values, errors.expand_as(values), samples.expand_as(values)}, -1);
  const at::Tensor last = whole.defined() ? whole : at::full({values.size(1), 3}, kNone, values.options());
  return at::cat({heads, last.unsqueeze(0)});
}

}  // namespace rankscope
