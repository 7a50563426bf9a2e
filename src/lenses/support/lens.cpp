#include "lenses/long_view.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace rankscope {

bool TileView::last() const { return place.first_row + tile.size(2) == place.queries; }

int64_t LongView::heads_at_once(int64_t rows) const {
  const int64_t bytes = int64_t{pattern.mass().is_cuda() ? 256 : 8} << 20;
  const int64_t each = pattern.samples() * rows * pattern.keys() * int64_t{sizeof(float)};
  return std::clamp<int64_t>(bytes / each, 1, pattern.heads());
}

at::Tensor Measurement::whole(const WholeView&) { return {}; }
at::Tensor Measurement::tile(const TileView&) { return {}; }
at::Tensor Measurement::factored(const FactoredView&) { return {}; }
at::Tensor Measurement::finish() { return {}; }
at::Tensor Measurement::array(std::string_view) { return {}; }

bool reads(const Lens& lens, std::string_view site) {
  return std::any_of(lens.sites.begin(), lens.sites.end(),
                     [&](const SiteUse& use) { return use.site == site || use.site == within_block(site); });
}

void check_sites(const Lens& lens) {
  for (const SiteUse& use : lens.sites)
    if (const SiteInfo& site = site_named(use.site); site.form != use.form)
      throw Error(fmt::format("the lens {} asks for {} as {}, but it comes as {}", lens.name, use.site,
                              to_string(use.form), to_string(site.form)))
          .in(std::string(lens.name));
}

}  // namespace rankscope
