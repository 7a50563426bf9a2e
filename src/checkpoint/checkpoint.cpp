#include "checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/suggest.h"
#include "checkpoint/language_model.h"
#include "checkpoint/what_it_is.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

bool present(const fs::path& path) {
  std::error_code ignored;  // an unreadable folder is reported by the open that follows
  return fs::exists(path, ignored);
}

// One network of a folder that holds several: its name behind the folder's, which is that of its tensors
// there.
struct Tower {
  const char *name, *of;            // of: the folder's model type
  const char *config, *model_type;  // where its config is, and its type; nullptr: those of the folder
};
constexpr Tower kTowers[] = {{"text_model", "clip", "text_config", "clip_text_model"},
                             {"vision_model", "clip", "vision_config", "clip_vision_model"},
                             {"encoder", "t5", nullptr, nullptr},
                             {"encoder", "bart", nullptr, nullptr},
                             {"encoder", "whisper", nullptr, nullptr}};

Json read_json_config(const fs::path& folder) { return read_json(folder / "config.json", 64 << 20); }

std::string type_in(const Json& config) {
  return config.is_object() && config.contains("model_type") && config["model_type"].is_string()
             ? config["model_type"].get<std::string>()
             : "";
}

const Tower* tower_of(const fs::path& folder) {
  if (present(folder) || !present(folder.parent_path() / "config.json")) return nullptr;
  const std::string type = type_in(read_json_config(folder.parent_path()));
  for (const Tower& tower : kTowers)
    if (folder.filename() == tower.name && type == tower.of) return &tower;
  return nullptr;
}

Json tower_config(const fs::path& folder, const Tower& tower) {
  Json both = read_json_config(folder.parent_path());
  if (tower.config == nullptr) {
    both["architectures"] = {"EncoderModel"};
    return both;
  }
  const JsonObject object(both, (folder.parent_path() / "config.json").string());
  Json own = object.at(tower.config);
  if (!own.is_object())
    throw Error(fmt::format("\"{}\" should be an object", tower.config)).in(object.place());
  // The older name of the same words, which the library lets win.
  const auto older = both.find(std::string(tower.config) + "_dict");
  if (older != both.end() && older->is_object()) own.update(*older);
  own["model_type"] = tower.model_type;
  fill_in_defaults(own);
  return own;
}

// Two towers that meet only at their ends are two networks.
void refuse_two_towers(const Json& config, const fs::path& folder) {
  if (type_in(config) != "clip") return;
  throw Error("this folder holds two networks, one for texts and one for images")
      .in(folder.string())
      .hint(fmt::format("{} or {}", (folder / "text_model").string(), (folder / "vision_model").string()));
}

// What errors about the config name: the file, and which part of it.
std::string config_place(const fs::path& folder) {
  const Tower* tower = tower_of(folder);
  if (tower == nullptr) return (folder / "config.json").string();
  const std::string file = (folder.parent_path() / "config.json").string();
  return tower->config == nullptr ? file : fmt::format("{}, {}", file, tower->config);
}

LanguageConfig read_config(const fs::path& folder) {
  if (const Tower* tower = tower_of(folder)) return {tower_config(folder, *tower)};
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) throw not_a_checkpoint(folder);
  const bool adapter =
      present(folder / "adapter_config.json") || present(folder / "adapter_model.safetensors");
  if (adapter && !present(folder / "config.json"))
    throw Error("this is an adapter: it holds changes to a model, not a model")
        .in(folder.string())
        .hint(fmt::format("python -c \"from peft import AutoPeftModelForCausalLM as M; "
                          "M.from_pretrained('{}').merge_and_unload().save_pretrained('OUT')\"",
                          to_copy(folder.string(), "FOLDER")));
  if (!present(folder / "config.json")) throw not_a_checkpoint(folder);
  Json config = read_json_config(folder);
  refuse_two_towers(config, folder);
  if (JsonObject(config, (folder / "config.json").string()).has("quantization_config"))
    throw Error("the weights are quantized (\"quantization_config\"), which is not supported")
        .in((folder / "config.json").string())
        .hint("use the checkpoint in float32, float16 or bfloat16 that it was made from");
  return language_config(std::move(config));
}

// What stands before the base model's names: nothing, the architecture's prefix, or whatever a wrapper has
// added.
std::string find_prefix(const TensorStore& store, const Architecture& architecture, const fs::path& folder) {
  const std::string anchor(architecture.anchor), usual(architecture.prefix);
  for (const std::string& prefix : {std::string(), usual})
    if (store.find(prefix + anchor) != nullptr) return prefix;
  std::vector<std::string> found;
  for (const auto& [name, located] : store.tensors())
    if (name.ends_with("." + anchor)) found.push_back(name.substr(0, name.size() - anchor.size()));
  if (found.size() == 1) return found.front();
  throw Error(found.empty() ? fmt::format("no tensor is named {} or ends with it", anchor)
                            : fmt::format("{} tensors end with {}, and it is not clear which model is meant",
                                          found.size(), anchor))
      .in(folder.string())
      .hint(fmt::format("check that the weights are those of a {} model", architecture.name));
}

// Finds tensors under the names that versions of the library have given them.
class Finder {
 public:
  Finder(const TensorStore& store, const Architecture& architecture, const fs::path& folder)
      : store_(store), prefix_(find_prefix(store, architecture, folder)) {
    // A wrapper's prefix stays on the head: "model.model.embed_tokens" goes with "model.lm_head". Another
    // word that ends alike is none: "model.language_model.embed_tokens" goes with "lm_head".
    if (!prefix_.ends_with(architecture.prefix)) return;
    const std::string outer = prefix_.substr(0, prefix_.size() - architecture.prefix.size());
    if (outer.ends_with('.')) outer_ = outer;
  }

  std::string name_of(const Source& source) const {
    return (source.outside_base ? outer_ : prefix_) + source.tensor;
  }

  /// The full name and the tensor, or nullptr.
  std::pair<std::string, const TensorStore::Located*> find(const Source& source) const {
    std::vector<std::string> names{source.tensor};
    if (!source.other.empty()) names.push_back(source.other);
    // TensorFlow's words for a norm's gain and bias, kept by early conversions.
    for (const auto& [ours, theirs] :
         {std::pair<std::string, std::string>{".weight", ".gamma"}, {".bias", ".beta"}})
      if (source.tensor.ends_with(ours))
        names.push_back(source.tensor.substr(0, source.tensor.size() - ours.size()) + theirs);
    for (const std::string& name : names) {
      const std::string full = (source.outside_base ? outer_ : prefix_) + name;
      if (const auto* located = store_.find(full)) return {full, located};
    }
    return {"", nullptr};
  }

 private:
  const TensorStore& store_;
  std::string prefix_, outer_;
};

std::vector<int64_t> expected_shape(const Parameter& parameter, const Source& source) {
  if (!source.stored_shape.empty()) return source.stored_shape;
  std::vector<int64_t> shape = parameter.shape;
  shape.front() /= 1 + static_cast<int64_t>(source.more.size());
  if (source.stored_rows > 0) shape.front() = source.stored_rows;
  if (source.transpose) std::reverse(shape.begin(), shape.end());
  return shape;
}

Checkpoint::Place placed(const Parameter& parameter, const Source& source, const std::string& name,
                         const TensorStore::Located& located) {
  const auto fault = [&](std::string message) {
    return Error(std::move(message))
        .in(fmt::format("{}, tensor \"{}\"", located.file->path().string(), name));
  };
  const std::vector<int64_t> expected = expected_shape(parameter, source), &got = located.entry->shape;
  if (expected != got)
    throw fault(fmt::format("expected {}, but got {}", expected, got)).hint("check config.json");
  const StoredType type = located.entry->type;
  if (type != StoredType::f64 && type != StoredType::f32 && type != StoredType::f16 &&
      type != StoredType::bf16)
    throw fault(fmt::format("expected floating-point numbers, but got {}", to_string(type)))
        .hint("quantized checkpoints are not supported: save it in float32, float16 or bfloat16");
  // As stored, a row has as many numbers as one row of the parameter; transposed, as many as it has rows.
  const int64_t own_columns = parameter.shape.size() == 2 ? parameter.shape[1] : 1;
  const int64_t stored_rows = source.stored_rows > 0 ? source.stored_rows : parameter.shape[0];
  const int64_t columns = source.transpose ? stored_rows : own_columns;
  return {source, located.file, located.entry, name, located.entry->elements() / columns, columns};
}

// The tensors below the first one, each with its shape and type; a missing one is named in `missing`.
void place_more(Checkpoint::Place& place, const Finder& finder, std::vector<std::string>& missing) {
  const int64_t each = place.rows;
  for (const std::string& tensor : place.source.more) {
    const Source one{.tensor = tensor, .outside_base = place.source.outside_base};
    const auto [name, located] = finder.find(one);
    if (located == nullptr) {
      missing.push_back(finder.name_of(one));
      continue;
    }
    if (located->entry->shape != place.entry->shape || located->entry->type != place.entry->type)
      throw Error(fmt::format("expected {}, as {} has, but got {}", place.entry->shape, place.tensor,
                              located->entry->shape))
          .in(fmt::format("{}, tensor \"{}\"", located->file->path().string(), name))
          .hint("check config.json");
    place.more.push_back({located->file, located->entry, name});
    place.rows += each;
  }
}

// Whether two tensors of one shape and type hold other numbers, by rows all over them: that of a vocabulary
// may have gigabytes.
bool differ(const TensorStore::Located& a, const TensorStore::Located& b) {
  constexpr size_t kRows = 64;
  if (a.entry->shape != b.entry->shape || a.entry->type != b.entry->type || a.entry->shape.empty())
    return false;
  const std::span<const std::byte> one = a.file->bytes(*a.entry), other = b.file->bytes(*b.entry);
  const auto rows = static_cast<size_t>(a.entry->shape.front());
  const size_t row = rows == 0 ? 0 : one.size() / rows;
  for (size_t i = 0; i < std::min(rows, kRows); ++i) {
    const size_t at = i * rows / std::min(rows, kRows) * row;
    if (!std::ranges::equal(one.subspan(at, row), other.subspan(at, row))) return true;
  }
  return false;
}

// Several parameters may be parts of one tensor.
Error missing_tensors(const std::vector<std::string>& wanted, const std::string& type,
                      const fs::path& folder) {
  std::vector<std::string> names;
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  const size_t shown = std::min<size_t>(5, names.size());
  std::string list =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) list += fmt::format(" and {} more", names.size() - shown);
  const bool decoder = std::ranges::all_of(
      names, [](const std::string& name) { return name.find("decoder.") != std::string::npos; });
  return Error(
             fmt::format("{} tensor{} missing: {}", names.size(), names.size() == 1 ? " is" : "s are", list))
      .in(folder.string())
      .hint(
          decoder && std::ranges::any_of(kTowers, [&](const Tower& t) { return type == t.of; })
              ? fmt::format("{}, if these are the weights of an encoder alone", (folder / "encoder").string())
              : "check config.json against the weights, and that every file was downloaded");
}

}  // namespace

fs::path files_of(const fs::path& folder) { return tower_of(folder) ? folder.parent_path() : folder; }

ModelSpec spec_of_folder(const fs::path& folder) {
  const Json json = read_config(folder).config;
  const JsonObject config(json, config_place(folder));
  return architecture_for(config, &json).spec(config);
}

Checkpoint::Checkpoint(const fs::path& folder) : folder_(folder) {
  LanguageConfig read = read_config(folder);
  config_ = std::move(read.config);
  wrapper_ = std::move(read.wrapper);
  const JsonObject config(config_, config_place(folder));
  architecture_ = &architecture_for(config, &config_);
  spec_ = architecture_->spec(config);
  store_ = std::make_unique<TensorStore>(files_of(folder));
  const Finder finder(*store_, *architecture_, folder);

  // "architectures" only promises a head; a base model saved from one with a head keeps the promise and loses
  // it.
  WeightMap sources = architecture_->weights(spec_);
  for (const Parameter& p : parameters_of(spec_, "unembed"))
    if (const Source& source = sources.at(p.name); finder.find(source).second == nullptr)
      missing_head_.push_back(finder.name_of(source));
  if (!missing_head_.empty()) {
    spec_.output = {};
    sources = architecture_->weights(spec_);
  }

  if (untie(finder)) sources = architecture_->weights(spec_);

  std::vector<std::string> missing;
  for (const Parameter& p : parameters(spec_)) {
    const Source& usual = sources.at(p.name);
    const Source* source = &usual;
    auto [name, located] = finder.find(usual);
    for (size_t i = 0; located == nullptr && i < usual.instead.size(); ++i) {
      source = &usual.instead[i];
      std::tie(name, located) = finder.find(*source);
    }
    if (located == nullptr) {
      missing.push_back(finder.name_of(usual));
    } else {
      Place& place = places_.emplace(p.name, placed(p, *source, name, *located)).first->second;
      place_more(place, finder, missing);
    }
  }
  if (!missing.empty()) throw missing_tensors(missing, type_in(config_), folder);
}

bool Checkpoint::untie(const auto& finder) {
  if (spec_.output.kind == HeadKind::none || !spec_.output.tied) return false;
  ModelSpec own = spec_;
  own.output.tied = false;
  const auto matrix_of = [&](const ModelSpec& spec) {
    const WeightMap all = architecture_->weights(spec);
    const auto found = all.find("unembed.W_U");
    return finder.find(found == all.end() ? Source{} : found->second);
  };
  const auto embedding = matrix_of(spec_).second;
  const auto [name, stored] = matrix_of(own);
  if (embedding == nullptr || stored == nullptr || !differ(*embedding, *stored)) return false;
  spec_ = std::move(own);
  untied_ = name;
  return true;
}

const Checkpoint::Place& Checkpoint::place(const std::string& parameter) const {
  const auto it = places_.find(parameter);
  if (it == places_.end())
    throw Error(fmt::format("the model has no parameter \"{}\"", parameter)).in(folder_.string());
  return it->second;
}

std::vector<std::string> Checkpoint::unused() const {
  std::set<std::string_view> used;
  for (const auto& [parameter, place] : places_) {
    used.insert(place.tensor);
    for (const Stored& stored : place.more) used.insert(stored.tensor);
  }
  std::vector<std::string> out;
  for (const auto& [name, located] : store_->tensors())
    if (!used.contains(name)) out.push_back(name);
  return out;
}

namespace {

// "encoder.layer." and 4 of "encoder.layer.4.output.dense.weight".
std::optional<std::pair<std::string, int64_t>> numbered_module(std::string_view name) {
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string_view word = name.substr(at, end - at);
    int64_t number = 0;
    const auto [rest, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (!word.empty() && fault == std::errc{} && rest == word.data() + word.size())
      return std::pair(std::string(name.substr(0, at)), number);
    at = end + 1;
  }
  return std::nullopt;
}

// What libraries save beside the weights and compute again: the causal masks of GPT-2 and GPT-NeoX (a bias
// has one dimension), rotary tables, positions, and the table of T5 that its cross attention has and never
// reads.
bool is_buffer(std::string_view name, size_t dimensions) {
  const bool mask = name.ends_with("attn.bias") || name.ends_with("attention.bias");
  return (mask && dimensions > 1) || name.ends_with(".masked_bias") || name.ends_with("position_ids") ||
         name.ends_with(".inv_freq") || name.find(".rotary_emb.") != std::string_view::npos ||
         name.ends_with(".EncDecAttention.relative_attention_bias.weight");
}

}  // namespace

std::map<std::string, int64_t> Checkpoint::last_used(const std::vector<std::string>& unused) const {
  const std::set<std::string_view> not_used(unused.begin(), unused.end());
  std::map<std::string, int64_t> last;
  for (const auto& [name, located] : store_->tensors())
    if (const auto module = numbered_module(name); module && !not_used.contains(name)) {
      const auto [at, first] = last.emplace(*module);
      at->second = std::max(at->second, module->second);
    }
  return last;
}

std::vector<std::string> Checkpoint::unused_inside() const {
  const std::vector<std::string> left = unused();
  const std::map<std::string, int64_t> last = last_used(left);
  std::vector<std::string> out;
  for (const std::string& name : left)
    if (const auto module = numbered_module(name))
      if (const auto at = last.find(module->first);
          at != last.end() && module->second <= at->second &&
          !is_buffer(name, store_->tensors().at(name).entry->shape.size()))
        out.push_back(name);
  return out;
}

std::vector<std::string> Checkpoint::unused_layers() const {
  const std::vector<std::string> left = unused();
  const std::map<std::string, int64_t> last = last_used(left);
  std::set<std::pair<std::string, int64_t>> behind;
  for (const std::string& name : left)
    if (const auto module = numbered_module(name))
      if (const auto at = last.find(module->first); at != last.end() && module->second > at->second)
        behind.insert(*module);
  std::vector<std::string> out;
  for (const auto& [module, number] : behind) out.push_back(fmt::format("{}{}", module, number));
  return out;
}

}  // namespace rankscope
