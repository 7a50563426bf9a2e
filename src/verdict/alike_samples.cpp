#include "verdict/alike_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

namespace rankscope::verdict {

SomeSamples alike_in_some(const Case& c, const ReadPlace& place) {
  using Values = std::map<int64_t, double>;
  const auto of = [&](const Row* r, const std::string& site) {
    return r == nullptr ? Values() : c.evidence.samples_at("full", r->metric.str(), site, r->tokens.str());
  };
  const std::string block = place.residual.site.str(),
                    units = fmt::format("blocks.{}.mlp.hook_pre", place.layer);
  struct Below {
    Values values;
    double threshold;
  };
  const std::array more{Below{of(place.left_out, block), c.limit("collapse")},
                        Below{of(place.read, units), c.limit("read")},
                        Below{of(place.read, units + "_linear"), c.limit("read")}};
  SomeSamples out;
  for (const auto& [sample, residual] : of(&place.residual, block)) {
    const bool alike = residual < c.limit("collapse") && std::ranges::all_of(more, [&](const Below& b) {
                         const auto found = b.values.find(sample);
                         return found == b.values.end() || found->second < b.threshold;
                       });
    ++out.all;
    out.alike += alike;
    if (alike)
      out.most = std::max(out.most, residual);
    else
      out.least_other = std::min(out.least_other, residual);
  }
  return out;
}

}  // namespace rankscope::verdict
