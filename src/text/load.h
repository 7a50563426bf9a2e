// tokenizer.json to a Tokenizer.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "text/tokenizer.h"

namespace rankscope {

/// `place` names the file in errors.
std::unique_ptr<Tokenizer> tokenizer_from_text(std::string_view text, const std::string& place);
std::unique_ptr<Tokenizer> tokenizer_from_json(const Json& value, const std::string& place);

}  // namespace rankscope
