#include "studies/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/csv.h"
#include "base/error.h"
#include "base/special.h"
#include "studies/builtin.h"
#include "theory/lower_bound.h"

namespace rankscope {
namespace {

constexpr double kProxyWidth = 64;
constexpr double kSame = 0.05;  // bounds nearer than this, relative, decide nothing

// 95 % of Student's t lies within this many standard errors of a mean over so many seeds.
double student(int64_t seeds) {
  return seeds < 2 ? std::numeric_limits<double>::infinity()
                   : student_quantile(0.025, static_cast<double>(seeds - 1));
}

// rank -> error, from the summary that `study export` wrote of the proxy's trials. The standard error there
// is that over seeds and that of the test set, which the seeds share: few seeds need Student's t, thousands
// of test sequences do not.
std::map<int64_t, ProxyError> proxy_errors() {
  struct Read {
    double mean = 0, error = 0, of_test = 0;
    int64_t seeds = 0;
  };
  std::map<int64_t, Read> read;
  const CellTable table = parse_csv(builtin_result("proxy"), "proxy");
  for (const auto& row : table.rows) {
    const auto cell = [&](const char* column) { return row[table.find(column).value()]; };
    const auto number = [&](const char* column) { return as_number(cell(column)).value(); };
    Read& r = read[static_cast<int64_t>(number("rank"))];
    if (cell("metric") == "test_mse")
      r.mean = number("mean"), r.error = number("stderr"), r.seeds = static_cast<int64_t>(number("seeds"));
    if (cell("metric") == "test_mse_stderr") r.of_test = number("mean");
  }
  std::map<int64_t, ProxyError> out;
  for (const auto& [rank, r] : read) {
    const double over_seeds = std::sqrt(std::max(0.0, r.error * r.error - r.of_test * r.of_test));
    out[rank] = {.mean = r.mean,
                 .half = std::hypot(student(r.seeds) * over_seeds, 1.96 * r.of_test),
                 .seeds = r.seeds};
  }
  return out;
}

// At a rank between two trained ones: a straight line in log rank. What the line is wrong by is not known; as
// errors fall with rank, the interval that holds both neighbours' holds this one.
std::optional<ProxyError> proxy_at(const std::map<int64_t, ProxyError>& trained, double rank) {
  const auto above = trained.lower_bound(static_cast<int64_t>(std::ceil(rank - 1e-9)));
  if (above == trained.end() || rank < static_cast<double>(trained.begin()->first) - 1e-9) return {};
  if (std::abs(static_cast<double>(above->first) - rank) < 1e-9) return above->second;
  const auto below = std::prev(above);
  const double low = std::log(static_cast<double>(below->first)),
               high = std::log(static_cast<double>(above->first));
  const double share = (std::log(rank) - low) / (high - low);
  const double mean = below->second.mean + share * (above->second.mean - below->second.mean);
  const auto reach = [&](const ProxyError& e) { return std::abs(e.mean - mean) + e.half; };
  return ProxyError{.mean = mean,
                    .half = std::max(reach(below->second), reach(above->second)),
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
  if (high->bound == 0)
    return "The bound does not tell these choices apart: it forbids nothing to any of them.";
  if (high->bound - low->bound <= kSame * high->bound)
    return fmt::format(
        "The bound does not tell these choices apart: it lies between {:.4f} and {:.4f}. It is about one "
        "layer and two points; at this width all of these ranks are low.",
        low->bound, high->bound);
  std::vector<double> bounds;
  for (const HeadChoice& c : choices) bounds.push_back(c.bound);
  std::ranges::sort(bounds);
  const auto near = [](double a, double b) { return b - a <= kSame * b; };
  const bool all = std::ranges::adjacent_find(bounds, near) == bounds.end();
  return fmt::format(
      "The bound tells {} apart{}: {:.4f} with {} head{}, {:.4f} with {}. It is about one layer that "
      "reads two points with a query of its own, without a skip.",
      all ? "them" : "the least and the largest", all ? "" : ", and not all that lie between", low->bound,
      low->heads, low->heads == 1 ? "" : "s", high->bound, high->heads);
}

std::string about_proxy(const std::vector<HeadChoice>& choices) {
  const HeadChoice *best = nullptr, *worst = nullptr;
  for (const HeadChoice& c : choices) {
    if (!c.proxy) continue;
    if (best == nullptr || c.proxy->mean < best->proxy->mean) best = &c;
    if (worst == nullptr || c.proxy->mean > worst->proxy->mean) worst = &c;
  }
  if (best == worst)
    return "The proxy has a value for one of these choices at most, so it tells nothing apart.";
  const bool between = best->proxy->between || worst->proxy->between;
  const std::string proxy = fmt::format(
      "{} (width 64, 3 layers, 10,000 steps: `layers=3 width=1` of the study fig1, {} seeds, heads times "
      "rank always 64)",
      between ? "Interpolated between the ranks it was trained at, the proxy" : "The trained proxy",
      std::min(best->proxy->seeds, worst->proxy->seeds));
  const auto value = [](const HeadChoice& c) {
    return fmt::format("{}{:.3f}", c.proxy->between ? "~" : "", c.proxy->mean);
  };
  const double gap = worst->proxy->mean - best->proxy->mean,
               noise = std::hypot(best->proxy->half, worst->proxy->half);
  if (gap <= noise)
    return fmt::format("{} does not tell these choices apart: they differ by {:.3f}, known to {:.3f} (95 %).",
                       proxy, gap, noise);
  // Neighbours in the order of their errors may be too near each other.
  std::vector<const HeadChoice*> known;
  for (const HeadChoice& c : choices)
    if (c.proxy) known.push_back(&c);
  std::sort(known.begin(), known.end(),
            [](const HeadChoice* a, const HeadChoice* b) { return a->proxy->mean < b->proxy->mean; });
  bool all = true;
  for (size_t i = 1; i < known.size(); ++i) {
    const ProxyError &a = *known[i - 1]->proxy, &b = *known[i]->proxy;
    all = all && b.mean - a.mean > std::hypot(a.half, b.half);
  }
  return fmt::format(
      "{} tells {}: {} with {} head{}, {} with {}, a difference known to {:.3f} (95 %, over "
      "seeds and "
      "test sets). That holds for the proxy: a task that needs rank (find the farthest of 16 points), at a "
      "fixed number "
      "of steps. Another task, size or budget may not care.",
      proxy, all ? "them apart" : "the best and the worst of them apart, and not all that lie between",
      value(*best), best->heads, best->heads == 1 ? "" : "s", value(*worst), worst->heads, noise);
}

}  // namespace

HeadChoices choose_heads(const TransformerSize& size, const std::vector<int64_t>& heads) {
  HeadChoices out;
  const std::map<int64_t, ProxyError> trained = proxy_errors();
  for (const int64_t h : heads) {
    if (h < 1 || size.width % h != 0)
      throw usage_error(fmt::format("{} heads do not divide the width {}", h, size.width)).in("--heads");
    if (std::count(heads.begin(), heads.end(), h) > 1)
      throw usage_error(
          fmt::format("{} heads are given twice: a choice is compared with others, not with itself", h))
          .in("--heads")
          .hint("give every choice once");
    if (size.kv_heads > 0 && h % size.kv_heads != 0)
      throw usage_error(fmt::format("{} key-value heads do not divide {} heads", size.kv_heads, h))
          .in("--kv-heads");
    out.choices.push_back(cost(size, h));
    out.choices.back().proxy = proxy_at(trained, kProxyWidth / static_cast<double>(h));
  }
  const bool equal = all_equal(out.choices, [](const HeadChoice& c) { return c.parameters; }) &&
                     all_equal(out.choices, [](const HeadChoice& c) { return c.kv_bytes; });
  if (out.choices.size() > 1) {
    out.remarks.push_back(
        equal ? "Parameters, FLOPs and cache are the same for every choice: heads times rank is the width."
              : "These choices are not equal: they differ in parameters, FLOPs and cache, as fewer wide "
                "heads share "
                "wider keys and values.");
    out.remarks.push_back(about_bound(out.choices));
    out.remarks.push_back(
        equal ? about_proxy(out.choices)
              : "The trained proxy compares networks of equal cost whose heads have keys and values "
                "of their own, so it says nothing of which of these to take.");
  }
  return out;
}

}  // namespace rankscope
