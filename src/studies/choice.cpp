#include "studies/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/csv.h"
#include "base/error.h"
#include "studies/builtin.h"
#include "theory/lower_bound.h"

namespace rankscope {
namespace {

constexpr double kProxyWidth = 64;
constexpr double kSame = 0.05;  // bounds nearer than this, relative, decide nothing

// rank -> error, from the summary that `study export` wrote of the proxy's trials.
std::map<int64_t, ProxyError> proxy_errors() {
  std::map<int64_t, ProxyError> out;
  const CellTable table = parse_csv(builtin_result("proxy"), "proxy");
  for (const auto& row : table.rows) {
    const auto cell = [&](const char* column) { return row[table.find(column).value()]; };
    const auto number = [&](const char* column) { return as_number(cell(column)).value(); };
    if (cell("metric") != "test_mse") continue;
    out[static_cast<int64_t>(number("rank"))] = {
        .mean = number("mean"), .stderr_ = number("stderr"), .seeds = static_cast<int64_t>(number("n"))};
  }
  return out;
}

// At a rank between two trained ones: a straight line in log rank, the larger of the two standard errors.
std::optional<ProxyError> proxy_at(const std::map<int64_t, ProxyError>& trained, double rank) {
  const auto above = trained.lower_bound(static_cast<int64_t>(std::ceil(rank - 1e-9)));
  if (above == trained.end() || rank < static_cast<double>(trained.begin()->first) - 1e-9) return {};
  if (std::abs(static_cast<double>(above->first) - rank) < 1e-9) return above->second;
  const auto below = std::prev(above);
  const double low = std::log(static_cast<double>(below->first)),
               high = std::log(static_cast<double>(above->first));
  const double share = (std::log(rank) - low) / (high - low);
  return ProxyError{.mean = below->second.mean + share * (above->second.mean - below->second.mean),
                    .stderr_ = std::max(below->second.stderr_, above->second.stderr_),
                    .seeds = std::min(below->second.seeds, above->second.seeds),
                    .between = true};
}

HeadChoice cost(const TransformerSize& s, int64_t heads) {
  const auto n = [](int64_t x) { return static_cast<double>(x); };
  HeadChoice c{.heads = heads, .rank = s.width / heads};
  const double d = n(s.width), m = n(s.mlp > 0 ? s.mlp : 4 * s.width);
  const double kv = n((s.kv_heads > 0 ? s.kv_heads : heads) * c.rank);
  const double matrices = 2 * d * d + 2 * d * kv + 2 * d * m, biases = 2 * d + 2 * kv + m + d, norms = 4 * d;
  c.parameters = n(s.layers) * (matrices + biases + norms);
  c.flops = n(s.layers) * (2 * matrices + 4 * n(s.context) * d);
  c.kv_bytes = n(s.layers) * 2 * kv * n(s.kv_bytes);
  c.bound = lower_bound(s.width, c.rank, n(heads));
  return c;
}

template <class Value>
bool all_equal(const std::vector<HeadChoice>& choices, Value value) {
  return std::all_of(choices.begin(), choices.end(),
                     [&](const HeadChoice& c) { return value(c) == value(choices.front()); });
}

std::string about_bound(const std::vector<HeadChoice>& choices) {
  const auto [low, high] =
      std::minmax_element(choices.begin(), choices.end(),
                          [](const HeadChoice& a, const HeadChoice& b) { return a.bound < b.bound; });
  if (high->bound - low->bound <= kSame * high->bound)
    return fmt::format(
        "The bound does not tell these choices apart: it lies between {:.4f} and {:.4f}. It is about one "
        "layer and two points; at this width all of these ranks are low.",
        low->bound, high->bound);
  return fmt::format("The bound tells them apart: {:.4f} with {} heads, {:.4f} with {}.", low->bound,
                     low->heads, high->bound, high->heads);
}

std::string about_proxy(const std::vector<HeadChoice>& choices) {
  const HeadChoice *best = nullptr, *worst = nullptr;
  for (const HeadChoice& c : choices) {
    if (!c.proxy) continue;
    if (best == nullptr || c.proxy->mean < best->proxy->mean) best = &c;
    if (worst == nullptr || c.proxy->mean > worst->proxy->mean) worst = &c;
  }
  if (best == worst)
    return "The proxy was trained for one of these choices at most, so it tells nothing apart.";
  const double gap = worst->proxy->mean - best->proxy->mean;
  const double noise = std::hypot(best->proxy->stderr_, worst->proxy->stderr_);
  if (gap <= 2 * noise)
    return fmt::format(
        "The trained proxy (width 64, 3 layers, 10,000 steps) does not tell these choices apart: they differ "
        "by {:.3f}, two standard errors are "
        "{:.3f}.",
        gap, 2 * noise);
  return fmt::format(
      "The trained proxy (width 64, 3 layers, 10,000 steps, {} seeds; errors over seeds alone) tells them "
      "apart: {:.3f} "
      "with {} heads, {:.3f} with {}, at the same parameters and FLOPs. It is a task that needs rank (find "
      "the farthest of 16 points); one that does not will not "
      "care.",
      std::min(best->proxy->seeds, worst->proxy->seeds), best->proxy->mean, best->heads, worst->proxy->mean,
      worst->heads);
}

}  // namespace

HeadChoices choose_heads(const TransformerSize& size, const std::vector<int64_t>& heads) {
  HeadChoices out;
  const std::map<int64_t, ProxyError> trained = proxy_errors();
  for (const int64_t h : heads) {
    if (h < 1 || size.width % h != 0)
      throw usage_error(fmt::format("{} heads do not divide the width {}", h, size.width)).in("--heads");
    if (size.kv_heads > 0 && h % size.kv_heads != 0)
      throw usage_error(fmt::format("{} key-value heads do not divide {} heads", size.kv_heads, h))
          .in("--kv-heads");
    out.choices.push_back(cost(size, h));
    out.choices.back().proxy = proxy_at(trained, kProxyWidth / static_cast<double>(h));
  }
  const bool equal = all_equal(out.choices, [](const HeadChoice& c) { return c.parameters; }) &&
                     all_equal(out.choices, [](const HeadChoice& c) { return c.kv_bytes; });
  if (out.choices.size() > 1) {
    if (equal)
      out.remarks.push_back(
          "Parameters, FLOPs and cache are the same for every choice: heads times rank is the width.");
    out.remarks.push_back(about_bound(out.choices));
    out.remarks.push_back(about_proxy(out.choices));
  }
  return out;
}

}  // namespace rankscope
