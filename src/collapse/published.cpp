#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/published.h"
#include "collapse/parts.h"

namespace rankscope {

std::vector<PublishedPoint> published_collapse(const std::string& model, const std::string& weights,
                                               const std::string& variant) {
  std::vector<PublishedPoint> out;
  for (const auto& row : published_rows("dong2021_collapse")) {
    if (row[0] != model || row[1] != weights || row[2] != variant) continue;
    const auto depth = static_cast<size_t>(published_number(row[3]));
    if (depth >= out.size()) out.resize(depth + 1);
    out[depth] = {published_number(row[4]), published_number(row[5])};
  }
  return out;
}

double published_networks_sd(const std::string& model) {
  std::vector<double> draws;
  for (const char* variant : {"SAN", "SAN+MLP", "SAN+skip", "transformer"})
    if (const auto curve = published_collapse(model, "init", variant); !curve.empty())
      draws.push_back(curve.front().value);
  return arithmetic_mean(draws).stderr_ * std::sqrt(static_cast<double>(draws.size()));
}

// Both spreads of theirs are of high values: where a curve has fallen they say nothing, and only ours counts.
double PublishedTally::reach(const PublishedPoint& p, double networks_sd) const {
  constexpr double kHigh = 0.1;
  return 2 * (p.value > kHigh ? std::hypot(networks_sd, theirs_sd, p.largest_std) : networks_sd);
}

void PublishedTally::add(const std::string& cell, const PublishedPoint& p, double ours, double networks_sd) {
  ++cells;
  if (std::fabs(ours - p.value) <= reach(p, networks_sd))
    ++inside;
  else
    outside.push_back(fmt::format("{} ({:.2f} times)", cell, ours / p.value));
}

Finding PublishedTally::said(int64_t networks) const {
  Finding f;
  f.topic = "published";
  f.value = inside;
  f.threshold = cells;
  f.sentence = fmt::format(
      "{} of {} published values lie within twice the scatter of {} networks of ours, of theirs and of their "
      "texts{}{}",
      inside, cells, networks, outside.empty() ? "" : "; not: ", fmt::join(outside, ", "));
  return f;
}

}  // namespace rankscope
