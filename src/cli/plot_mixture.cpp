#include "cli/plot_mixture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/table.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestAbout = 1 << 20;
constexpr size_t kMostValues = 4;  // named

std::string cell(const CellTable& table, const std::vector<std::string>& row, const std::string& column) {
  const auto at = table.find(column);
  return at && *at < row.size() ? row[*at] : "";
}

// Values asked for of one column are alternatives.
bool is_wanted(const CellTable& table, const std::vector<std::string>& row, const FigureRequest& request) {
  if (!as_number(cell(table, row, request.y))) return false;
  return std::all_of(request.where.begin(), request.where.end(), [&](const auto& first) {
    return std::any_of(request.where.begin(), request.where.end(), [&](const auto& other) {
      return other.first == first.first && other.second == cell(table, row, first.first);
    });
  });
}

}  // namespace

std::vector<std::string> settings_of(const Json& about) {
  std::vector<std::string> names;
  if (about.is_object() && about.contains("keys") && about["keys"].is_array())
    for (const Json& name : about["keys"])
      if (name.is_string()) names.push_back(name.get<std::string>());
  return names;
}

std::vector<std::string> settings_beside(const fs::path& trials) {
  const fs::path about = trials.parent_path() / "study.json";
  std::error_code ignored;
  if (trials.filename() != "trials.csv" || !fs::is_regular_file(about, ignored)) return {};
  try {
    return settings_of(read_json(about, kLargestAbout));
  } catch (const Error&) {
    return {};  // the curves are drawn from the table alone
  }
}

std::vector<std::string> mixed_settings(const std::vector<std::string>& settings, const CellTable& table,
                                        const FigureRequest& request) {
  std::vector<std::string> mixed;
  for (const std::string& name : settings) {
    if (name == "seed" || name == request.x || !table.find(name)) continue;
    std::map<std::vector<std::string>, std::set<std::string>> points;
    for (const auto& row : table.rows) {
      if (!is_wanted(table, row, request)) continue;
      std::vector<std::string> point{cell(table, row, request.x)};
      for (const std::string& by : request.by) point.push_back(cell(table, row, by));
      points[point].insert(cell(table, row, name));
    }
    const auto most = std::max_element(points.begin(), points.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    if (most == points.end() || most->second.size() < 2) continue;
    std::vector<std::string> values;
    for (const std::string& value : most->second)
      values.push_back(value.empty() ? "not set" : printable(value, 40));
    if (values.size() > kMostValues) {
      values.resize(kMostValues);
      values.emplace_back("...");
    }
    mixed.push_back(fmt::format("{} ({})", printable(name, 40), fmt::join(values, ", ")));
  }
  return mixed;
}

}  // namespace rankscope
