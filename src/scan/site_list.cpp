#include "scan/site_list.h"

#include <fmt/format.h>

#include "checkpoint/checkpoint.h"
#include "lenses/lens.h"
#include "model/sites.h"

namespace rankscope {
namespace {

std::vector<std::string> readers_of(const SiteInfo& site) {
  std::vector<std::string> out;
  for (const Lens* lens : lenses())
    for (const SiteUse& use : lens->sites) {
      if (use.site == site.name || (!site.like.empty() && use.site == site.like))
        out.emplace_back(lens->name);
      else if (within_block(use.site) == site.name)
        out.push_back(
            fmt::format("{} ({})", lens->name, use.site.substr(0, use.site.size() - site.name.size() - 1)));
    }
  return out;
}

}  // namespace

std::vector<SiteLine> list_sites(const std::filesystem::path& model) {
  const ModelSpec spec = Checkpoint(model).spec();
  const auto line = [&](const SiteInfo& site, const BlockSpec& block) {
    return SiteLine{std::string(site.name),
                    site.shape(spec, block),
                    std::string(to_string(site.form)),
                    std::string(site.meaning),
                    {},
                    readers_of(site)};
  };
  std::vector<SiteLine> out;
  for (const SiteInfo& site : sites()) {
    if (!site.in_block) {
      if (site.present(spec, {})) out.push_back(line(site, {}));
      continue;
    }
    const size_t before = out.size();  // blocks of other shapes get lines of their own
    for (size_t l = 0; l < spec.blocks.size(); ++l) {
      const BlockSpec& block = spec.blocks[l];
      if (!site.present(spec, block)) continue;
      const std::string shape = site.shape(spec, block);
      size_t at = before;
      while (at < out.size() && out[at].shape != shape) ++at;
      if (at == out.size()) out.push_back(line(site, block));
      out[at].blocks.push_back(static_cast<int64_t>(l));
    }
  }
  return out;
}

}  // namespace rankscope
