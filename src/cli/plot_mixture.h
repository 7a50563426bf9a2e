// What `rankscope plot` averages over besides seeds, which a reader of the figure would not think of.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/figure.h"

namespace rankscope {

/// Names of a study's settings, as its study.json has them.
std::vector<std::string> settings_of(const Json& about);

/// The same for a table of trials, of the study.json beside it; none where there is no such file.
std::vector<std::string> settings_beside(const std::filesystem::path& trials);

/// Which of these settings differ between rows of one point, "heads (1, 2)" each.
std::vector<std::string> mixed_settings(const std::vector<std::string>& settings, const CellTable& table,
                                        const FigureRequest& request);

}  // namespace rankscope
