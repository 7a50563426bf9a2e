#include "cli/builtin.h"

#include <cstdlib>

#include "base/error.h"
#include "cli/own_folder.h"

namespace rankscope {
namespace fs = std::filesystem;

fs::path builtin_model() {
  if (const char* set = std::getenv("RANKSCOPE_MODELS")) return fs::path(set) / "builtin";
  const fs::path here = own_folder();
  for (const char* place : {"../models/builtin", "../share/rankscope/models/builtin"})
    if (fs::exists(here / place / "config.json")) return fs::weakly_canonical(here / place);
  throw Error("the built-in model is not there")
      .in(here.string())
      .hint("name a folder, or set RANKSCOPE_MODELS");
}

}  // namespace rankscope
