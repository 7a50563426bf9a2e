#include "checkpoint/architecture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace rankscope {
namespace {

std::vector<std::string> known_types() {
  std::vector<std::string> all;
  for (const Architecture* a : architectures())
    all.insert(all.end(), a->model_types.begin(), a->model_types.end());
  return all;
}

// "XLMRobertaForMaskedLM" is a class of "xlm-roberta": the name without hyphens, then what the class is for.
bool is_class_of(std::string_view class_name, std::string_view model_type) {
  size_t at = 0;
  for (const char c : model_type) {
    if (c == '-') continue;
    if (at == class_name.size() || std::tolower(static_cast<unsigned char>(class_name[at])) != c)
      return false;
    ++at;
  }
  const std::string_view rest = class_name.substr(at);
  return rest.starts_with("For") || rest.starts_with("Model") || rest.starts_with("LMHead") ||
         rest.starts_with("DoubleHeads");
}

Error unknown_architecture(const std::string& what, const JsonObject& config) {
  return Error(what)
      .in(config.place())
      .hint(fmt::format("a checkpoint of one of {}", fmt::join(known_types(), ", ")));
}

}  // namespace

std::string model_type_of(const JsonObject& config) {
  if (const std::string type = config.string("model_type", ""); !type.empty()) return type;
  if (!config.has("architectures")) throw unknown_architecture("the key \"model_type\" is missing", config);
  std::string seen;
  for (const Json& name : config.at("architectures")) {
    if (!name.is_string()) continue;
    for (const std::string& type : known_types())
      if (is_class_of(name.get_ref<const std::string&>(), type)) return type;
    seen += (seen.empty() ? "" : ", ") + printable(name.get_ref<const std::string&>());
  }
  throw unknown_architecture(
      fmt::format("there is no \"model_type\", and of the architectures [{}] none is known", seen), config);
}

const Architecture& architecture_for(const JsonObject& config) {
  const std::string type = model_type_of(config);
  for (const Architecture* a : architectures())
    if (std::find(a->model_types.begin(), a->model_types.end(), type) != a->model_types.end()) return *a;
  throw unknown_architecture(fmt::format("the model type \"{}\" is not supported", printable(type)), config);
}

ModelSpec spec_from_config(std::string_view text, const std::string& place) {
  const Json json = parse_json(text, place);
  const JsonObject config(json, place);
  return architecture_for(config).spec(config);
}

}  // namespace rankscope
