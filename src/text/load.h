// tokenizer.json to a Tokenizer.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "text/tokenizer.h"

namespace rankscope {

/// The text of the file as JSON, unless it is nested too deep. `place` names the file in errors.
Json tokenizer_json(std::string_view text, const std::string& place);

std::unique_ptr<Tokenizer> tokenizer_from_text(std::string_view text, const std::string& place);
std::unique_ptr<Tokenizer> tokenizer_from_json(const Json& value, const std::string& place);

}  // namespace rankscope
