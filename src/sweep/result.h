// trials/<id>/result.json: what came of a trial, beside its checkpoint and its curve.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace rankscope {

struct TrialResult {
  std::map<std::string, double> values;
  double seconds = 0;
  std::string precision = {};
};

/// {"a":0.1,"b":null}; what is not finite is null, and NaN when read back.
std::string values_json(const std::map<std::string, double>& values);
std::map<std::string, double> parse_values(const std::string& json, const std::string& place);

void write_result(const std::filesystem::path& folder, const std::string& config, const TrialResult& result);

/// Nothing where there is no file, where it is not whole, or where it belongs to another configuration.
std::optional<TrialResult> read_result(const std::filesystem::path& folder, const std::string& config);

}  // namespace rankscope
