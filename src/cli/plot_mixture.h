// What `rankscope plot` averages over besides seeds, which a reader of the figure would not think of.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/figure.h"

namespace rankscope {

/// Settings that differ between rows of one point, "heads (1, 2)" each: of a table of trials, by the names of
/// settings in the study.json beside it; none where there is no such file.
std::vector<std::string> mixed_settings(const std::filesystem::path& trials, const CellTable& table,
                                        const FigureRequest& request);

}  // namespace rankscope
