#include "spec/steps.h"

namespace rankscope {

std::vector<Step> steps_of(const BlockSpec& block) {
  std::vector<Step> steps;
  for (int i = 0; i < static_cast<int>(block.branches.size()); ++i) {
    const BranchSpec& b = block.branches[static_cast<size_t>(i)];
    const bool beside = block.parallel && i > 0;  // its join adds to the sum that the first one began
    steps.push_back({.kind = Step::Kind::read,
                     .branch = i,
                     .norm = b.before,
                     .norm_name = b.norm_name,
                     .from_start = beside,
                     .replaces = !beside && b.skip && b.skip_normed,
                     .name = b.name});
    steps.push_back({.kind = Step::Kind::run, .branch = i, .part = b.part, .name = b.name, .reads = b.reads});
    steps.push_back({.kind = Step::Kind::write,
                     .branch = i,
                     .norm = b.inside,
                     .norm_name = b.norm_name + "_post",
                     .name = b.name,
                     .scale = b.scale,
                     .channel_scale = b.channel_scale});
    steps.push_back({.kind = Step::Kind::join,
                     .branch = i,
                     .norm = b.behind,
                     .norm_name = b.norm_name,
                     .name = b.name,
                     .skip = beside || b.skip});
  }
  return steps;
}

}  // namespace rankscope
