#include "sweep/result.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace rankscope {
namespace {

constexpr uint64_t kLargestResult = 1 << 20;

Json as_json(const std::map<std::string, double>& values) {
  Json out = Json::object();
  for (const auto& [name, value] : values) out[name] = std::isfinite(value) ? Json(value) : Json(nullptr);
  return out;
}

std::map<std::string, double> from_json(const Json& object, const std::string& place) {
  if (!object.is_object()) throw Error("expected an object of numbers").in(place);
  std::map<std::string, double> out;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number() && !value.is_null()) throw Error("\"" + name + "\" is not a number").in(place);
    out[name] = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  }
  return out;
}

}  // namespace

std::string values_json(const std::map<std::string, double>& values) { return as_json(values).dump(); }

std::map<std::string, double> parse_values(const std::string& json, const std::string& place) {
  return from_json(parse_json(json, place), place);
}

void write_result(const std::filesystem::path& folder, const std::string& config, const TrialResult& result) {
  const Json file{{"config", Json::parse(config)},
                  {"values", as_json(result.values)},
                  {"seconds", result.seconds},
                  {"precision", result.precision}};
  write_file(folder / "result.json", file.dump(2) + "\n");
}

std::optional<TrialResult> read_result(const std::filesystem::path& folder, const std::string& config) {
  const std::filesystem::path path = folder / "result.json";
  if (!std::filesystem::exists(path)) return {};
  try {
    const Json file = read_json(path, kLargestResult);
    const JsonObject object(file, path.string());
    if (object.at("config") != Json::parse(config)) return {};
    return TrialResult{from_json(object.at("values"), path.string()), object.number("seconds", 0, 1e300),
                       object.string("precision", "")};
  } catch (const Error&) {  // cut off with the power: the trial goes on from its checkpoint
    return {};
  }
}

}  // namespace rankscope
