// How checkpoints of trials lay before optimizer moments were stored by parameter: one flat buffer in an
// order of its own, and a few names that have changed since.
#pragma once

#include <string>
#include <vector>

#include "train/layout.h"

namespace rankscope {

/// The slots of the spec's layout in the order of old flat buffers.
std::vector<Slot> old_order(const ModelSpec& spec, const Layout& layout);

/// What a parameter was called.
std::string old_name(const std::string& name, const ModelSpec& spec);

}  // namespace rankscope
