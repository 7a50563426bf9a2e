#include "cli/model_folder.h"

#include <fmt/format.h>

#include <iterator>
#include <ostream>
#include <vector>

#include "base/error.h"
#include "checkpoint/find_models.h"

namespace rankscope {
namespace fs = std::filesystem;

fs::path model_folder(const fs::path& given, Io& io) {
  std::error_code ignored;
  const bool adapter = fs::exists(given / "adapter_config.json", ignored);
  if (!fs::is_directory(given, ignored) || adapter || fs::exists(given / "config.json", ignored))
    return given;
  const std::vector<fs::path> found = models_below(given);
  if (found.size() != 1) return given;
  const fs::path below = found.front().lexically_relative(given);
  const auto levels = std::distance(below.begin(), below.end());
  if (!io.quiet)
    io.err << fmt::format("the model is {} down: {}\n",
                          levels == 1 ? "one folder" : fmt::format("{} folders", levels),
                          printable(found.front().string(), 400));
  return found.front();
}

}  // namespace rankscope
