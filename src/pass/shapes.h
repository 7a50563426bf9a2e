// What --init knows: published shapes, and any config.json. A network of that shape needs no checkpoint, only
// a seed. Knows nothing of torch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/model.h"

namespace rankscope {

std::vector<std::string> shape_names();

/// "bert-base": the spec its config.json would give; or the path of a config.json, or of a folder with one.
/// An unknown name is answered with the nearest.
ModelSpec shape_spec(std::string_view name);

}  // namespace rankscope
