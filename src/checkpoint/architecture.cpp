#include "checkpoint/architecture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "base/asked_keys.h"
#include "base/error.h"
#include "checkpoint/language_model.h"

namespace rankscope {
namespace {

std::vector<std::string> known_types() {
  std::vector<std::string> all;
  for (const Architecture* a : architectures())
    all.insert(all.end(), a->model_types.begin(), a->model_types.end());
  return all;
}

// "XLMRobertaForMaskedLM" is a class of "xlm-roberta": the name without hyphens and underscores, then what
// the class is for.
bool is_class_of(std::string_view class_name, std::string_view model_type) {
  size_t at = 0;
  for (const char c : model_type) {
    if (c == '-' || c == '_') continue;
    if (at == class_name.size() || std::tolower(static_cast<unsigned char>(class_name[at])) != c)
      return false;
    ++at;
  }
  const std::string_view rest = class_name.substr(at);
  return rest.starts_with("For") || rest.starts_with("Model") || rest.starts_with("LMHead") ||
         rest.starts_with("DoubleHeads");
}

// Keys that say nothing about what is computed.
bool is_bookkeeping(const std::string& key) {
  static const std::set<std::string> words{"architectures",
                                           "model_type",
                                           "torch_dtype",
                                           "dtype",
                                           "transformers_version",
                                           "use_cache",
                                           "auto_map",
                                           "_name_or_path",
                                           "initializer_range",
                                           "init_std",
                                           "id2label",
                                           "label2id",
                                           "num_labels",
                                           "problem_type",
                                           "task_specific_params",
                                           "return_dict",
                                           "output_attentions",
                                           "output_hidden_states",
                                           "is_decoder",
                                           "is_encoder_decoder",
                                           "chunk_size_feed_forward",
                                           "gradient_checkpointing",
                                           "pretraining_tp",
                                           "attn_implementation",
                                           "_attn_implementation",
                                           "unsloth_version",
                                           "output_router_logits",
                                           "router_aux_loss_coef",
                                           "quantization_config"};
  return words.count(key) > 0 || key.ends_with("_token_id") || key.ends_with("dropout") ||
         key.ends_with("_drop") || key.ends_with("pdrop") || key.ends_with("dropout_prob") ||
         key.ends_with("dropout_rate");
}

// An architecture that could have written the config, and what of it that one would pass over.
struct Kin {
  const Architecture* architecture = nullptr;
  std::vector<std::string> passed_over = {};
  size_t read = 0;
  bool fits = false;  // it makes a network of it
};

Kin kin_of(const Architecture& a, const JsonObject& config, const Json& json) {
  Kin kin{.architecture = &a};
  const AskedKeys asked;
  try {
    a.spec(config);
    kin.fits = true;
  } catch (const Error&) {
    // It reads as far as it can.
  }
  for (const auto& [key, value] : json.items()) {
    if (is_bookkeeping(key)) continue;
    if (asked.keys().count(key) > 0)
      ++kin.read;
    else if (!value.is_null())
      kin.passed_over.push_back(key);
  }
  return kin;
}

// How much alike two model types are called: letters that both begin with, "qwen3_next" and "qwen3".
size_t alike(std::string_view type, const Architecture& a) {
  size_t most = 0;
  for (const std::string_view known : a.model_types) {
    const auto [end, ignored] = std::mismatch(type.begin(), type.end(), known.begin(), known.end());
    most = std::max(most, static_cast<size_t>(end - type.begin()));
  }
  return most;
}

// The nearest known one: it makes a network of the config, and reads more of it than the others do; a name
// that begins alike counts as much as a word for every letter.
std::string nearest(const std::string& type, const JsonObject& config, const Json& json) {
  Kin best;
  for (const Architecture* a : architectures()) {
    if (a->name == "rankscope") continue;
    Kin kin = kin_of(*a, config, json);
    kin.read += kin.read > 0 ? alike(type, *a) : 0;
    if (best.architecture == nullptr || std::pair(kin.fits, kin.read) > std::pair(best.fits, best.read))
      best = std::move(kin);
  }
  if (best.read == 0) return "";
  std::string text = fmt::format("the nearest known one is {} ({})", best.architecture->name,
                                 fmt::join(best.architecture->model_types, ", "));
  if (!best.fits) return text + ", which makes no network of it";
  if (best.passed_over.empty()) return text + ", which knows every word of its config";
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min<size_t>(best.passed_over.size(), 6); ++i)
    shown.push_back(printable(best.passed_over[i]));
  return text + fmt::format(", which does not know {}{}", fmt::join(shown, ", "),
                            shown.size() < best.passed_over.size() ? ", ..." : "");
}

Error unknown_architecture(const std::string& what, const JsonObject& config) {
  return Error(what).in(config.place()).hint("rankscope inspect --architectures lists what is read");
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

const Architecture& architecture_for(const JsonObject& config, const Json* json) {
  const std::string type = model_type_of(config);
  for (const Architecture* a : architectures())
    if (std::find(a->model_types.begin(), a->model_types.end(), type) != a->model_types.end()) return *a;
  const std::string kin = json != nullptr ? nearest(type, config, *json) : "";
  throw unknown_architecture(fmt::format("the model type \"{}\" is not supported{}{}", printable(type),
                                         kin.empty() ? "" : "; ", kin),
                             config);
}

ModelSpec spec_from_config(std::string_view text, const std::string& place) {
  const Json json = language_config(parse_json(text, place)).config;
  const JsonObject config(json, place);
  return architecture_for(config, &json).spec(config);
}

}  // namespace rankscope
