// Which words of a config.json describe the language model. A folder that reads images, too, keeps them in
// "text_config", and often only those in which it differs from what its class takes by default.
#pragma once

#include <string>

#include "base/json.h"

namespace rankscope {

struct LanguageConfig {
  Json config;
  std::string wrapper = {};  // the folder's own model type, where the language model is a part of it
};

/// The config as it is, or the "text_config" of a folder whose language model reads texts as it does alone;
/// what its class takes by default and an architecture cannot guess is filled in.
LanguageConfig language_config(Json config);

/// Fills in what the class of a part's own config takes by default: those are often written by difference.
void fill_in_defaults(Json& config);

}  // namespace rankscope
