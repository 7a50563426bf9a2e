#include "cli/threshold_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/options.h"
#include "report/names.h"

namespace rankscope {
namespace {

struct Judged {
  std::string_view printed, threshold;  // a heading or a metric, and what it is held against
};

// Those whose threshold has another name, and their own unit.
constexpr std::array<Judged, 10> kJudged{{{"residual", "collapse"},
                                          {"residual_fro_rel_trimmed", "collapse"},
                                          {"residual_fro_rel_normed", "collapse"},
                                          {"sinks", "sink_margin"},
                                          {"massive_ratio", "massive"},
                                          {"unit_rank", "dimension"},
                                          {"unit_sd_rel_p90", "read"},
                                          {"output_kl", "epsilon"},
                                          {"output_error", "epsilon_error"},
                                          {"head_predicted", "duplicate"}}};

std::string threshold_of(const std::string& name) {
  const auto found =
      std::find_if(kJudged.begin(), kJudged.end(), [&](const Judged& j) { return j.printed == name; });
  if (found != kJudged.end()) return std::string(found->threshold);
  const std::vector<ThresholdInfo>& all = threshold_infos();
  const bool own =
      std::any_of(all.begin(), all.end(), [&](const ThresholdInfo& t) { return t.name == name; });
  if (!own && is_name(name))
    throw usage_error(fmt::format("no sentence of the verdict is decided by {} alone", name))
        .in("--threshold")
        .hint("rankscope scan --help lists what sentences are decided by");
  if (!own) {
    std::vector<std::string> known;
    for (const ThresholdInfo& t : all) known.emplace_back(t.name);
    for (const Judged& j : kJudged) known.emplace_back(j.printed);
    throw usage_error(fmt::format("there is no threshold \"{}\"", printable(name)))
        .hint(fmt::format("{}   (rankscope scan --help shows all {})",
                          fmt::join(nearest(name, known, 3), ", "), all.size()));
  }
  return name;
}

}  // namespace

std::string set_threshold(Thresholds& thresholds, const std::string& text) {
  const size_t at = text.find('=');
  const std::string name = threshold_of(text.substr(0, at));
  double value = thresholds[name];  // an error where there is none of that name
  if (at == std::string::npos || !parse_not_negative(text.substr(at + 1), value))
    throw usage_error(fmt::format("expected a threshold as {}=0.05, but got \"{}\"", name, printable(text)))
        .in("--threshold");
  thresholds.set(name, value);
  return name;
}

}  // namespace rankscope
