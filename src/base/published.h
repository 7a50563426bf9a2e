// Published numbers that travel inside the library: src/studies/published/*.csv, written into code by CMake.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

/// dong2021_collapse (figure 2), dong2021_chained (attention along sampled paths), dong2021_path_counts:
/// Dong, Cordonnier and Loukas, "Attention is not all you need", 2021. Empty for a name that is not there.
std::string_view published_csv(std::string_view name);

/// Its rows, without the header.
std::vector<std::vector<std::string>> published_rows(std::string_view name);

/// NaN for an empty field.
double published_number(std::string_view field);

}  // namespace rankscope
