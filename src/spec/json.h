// A spec as JSON and back: canonical (equal specs give equal text), without what has its default value.
#pragma once

#include <string>

#include "base/json.h"
#include "spec/model.h"

namespace rankscope {

Json to_json(const ModelSpec& spec);

/// From outside: a value of the wrong type or out of its range, and a word nobody knows, are errors that name
/// `place`.
ModelSpec spec_from_json(const Json& json, const std::string& place);

}  // namespace rankscope
