// Attention whose heads come in groups that attend in different ways (spec/head_groups.h). Compressed heads
// have filters of their own: one for keys and one for values, the same for every channel of a head. (The
// paper's have one a channel, or mix channels, too: their mixers of tokens would not be matrices.)
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "parts/support/attention.h"
#include "spec/head_groups.h"

namespace rankscope {
namespace {

void refuse_other_parts(const HeadGroups& groups) {
  for (const HeadGroup& g : groups.groups)
    for (const Part* part : parts())
      if (part->variant == g.kind)
        throw usage_error(
            fmt::format("{} attention has parameters of its own: no group of mixed heads can be "
                        "of this kind",
                        g.kind))
            .hint(fmt::format("the part {}, for all heads of a layer", part->name));
}

void build_mixed_attention(PartBuilder& b) {
  const HeadGroups groups = head_groups(b.attention());
  refuse_other_parts(groups);
  output_map(b, attended(b));
  if (!groups.compresses()) return;
  const double spread = 1 / std::sqrt(static_cast<double>(groups.kernel));
  // A row a head, so that a head can be cut out; those of other heads are not read.
  b.parameter("key_filter", {b.attention().heads, groups.kernel}, 0, spread);
  b.parameter("value_filter", {b.attention().heads, groups.kernel}, 0, spread);
}

}  // namespace

extern const Part part_mixed_attention{
    .name = "mixed_attention",
    .summary = "attention whose heads come in groups: full, local, compressed or of any other kind",
    .kind = Part::Kind::attention,
    .variant = kMixed,
    .build = build_mixed_attention};

}  // namespace rankscope
