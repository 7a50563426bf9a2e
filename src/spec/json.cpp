#include "spec/json.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "spec/limits.h"

namespace rankscope {
namespace {

constexpr double kMaxNumber = 1e12;
constexpr const char *kAttention = "attention", *kMlp = "mlp";

// Every field is named once, in the `fields` below: writing and reading go through the same list.
template <class Archive>
void fields(Archive& a, NormSpec& n) {
  const NormSpec d;
  a.word("kind", n.kind, d.kind, norm_kinds());
  a.number("epsilon", n.epsilon, d.epsilon, 0, 1);
  a.flag("off", n.off, d.off);
  a.flag("gain", n.gain, d.gain);
  a.flag("bias", n.bias, d.bias);
}

template <class Archive>
void fields(Archive& a, AttentionSpec& s) {
  const AttentionSpec d;
  a.text("variant", s.variant, d.variant);
  a.integer("heads", s.heads, d.heads, 1, kMaxHeads);
  a.integer("kv_heads", s.kv_heads, d.kv_heads, 1, kMaxHeads);
  a.integer("d_qk", s.d_qk, d.d_qk, 1, kMaxHeadWidth);
  a.integer("d_v", s.d_v, d.d_v, 1, kMaxHeadWidth);
  a.integer("modules", s.modules, d.modules, 1, kMaxHeads);
  a.number("scale", s.scale, d.scale, 0, kMaxNumber);
  a.number("softcap", s.softcap, d.softcap, 0, kMaxNumber);
  a.object("qk_norm", s.qk_norm);
  a.word("qk_norm_span", s.qk_norm_span, d.qk_norm_span, norm_spans());
  a.flag("causal", s.causal, d.causal);
  a.integer("window", s.window, d.window, 0, kMaxPositions);
  a.flag("positions", s.positions, d.positions);
  a.numbers("rotary_frequencies", s.rotary_frequencies);
  a.flag("rotary_adjacent", s.rotary_adjacent, d.rotary_adjacent);
  a.number("rotary_scale", s.rotary_scale, d.rotary_scale, 0, kMaxNumber);
  a.integer("rotary_context", s.rotary_context, d.rotary_context, 0, kMaxPositions);
  a.numbers("rotary_long", s.rotary_long);
  a.number("rotary_growth", s.rotary_growth, d.rotary_growth, 0, kMaxNumber);
  a.numbers("alibi", s.alibi);
  a.flag("alibi_rounded", s.alibi_rounded, d.alibi_rounded);
  a.integer("buckets", s.buckets, d.buckets, 0, kMaxPositions);
  a.integer("bucket_distance", s.bucket_distance, d.bucket_distance, 0, kMaxPositions);
  a.flag("sinks", s.sinks, d.sinks);
  a.flag("bias", s.bias, d.bias);
  a.flag("key_bias", s.key_bias, d.key_bias);
  a.flag("output_bias", s.output_bias, d.output_bias);
  a.flag("value_map", s.value_map, d.value_map);
  a.integer("output_width", s.output_width, d.output_width, 0, kMaxWidth);
  a.integers("heads_off", s.heads_off, kMaxHeads);
  a.integers("heads_fixed", s.heads_fixed, kMaxHeads);
  a.numbers("fixed_values", s.fixed_values);
  a.integer("truncate_qk", s.truncate_qk, d.truncate_qk, 0, kMaxHeadWidth);
  a.integer("truncate_ov", s.truncate_ov, d.truncate_ov, 0, kMaxHeadWidth);
}

template <class Archive>
void fields(Archive& a, MlpSpec& s) {
  const MlpSpec d;
  a.integer("width", s.width, d.width, 0, kMaxMlpWidth);
  a.word("activation", s.activation, d.activation, activations());
  a.flag("bias", s.bias, d.bias);
  a.number("share_scale", s.share_scale, d.share_scale, 0, kMaxNumber);
  a.integers("experts_off", s.experts_off, kMaxHeads);
}

template <class Archive>
void fields(Archive& a, BranchSpec& s) {
  const BranchSpec d;
  a.text("name", s.name, d.name);
  a.text("norm_name", s.norm_name, d.norm_name);
  a.object("before", s.before);
  a.text("part", s.part.name, std::string());
  a.words(s.part.words);
  a.options("options", s.part.options);
  a.object("inside", s.inside);
  a.number("scale", s.scale, d.scale, -kMaxNumber, kMaxNumber);
  a.flag("channel_scale", s.channel_scale, d.channel_scale);
  a.flag("skip", s.skip, d.skip);
  a.flag("skip_normed", s.skip_normed, d.skip_normed);
  a.object("behind", s.behind);
  a.text("reads", s.reads, d.reads);
}

template <class Archive>
void fields(Archive& a, BlockSpec& s) {
  const BlockSpec d;
  a.list("branches", s.branches, 64);
  a.flag("parallel", s.parallel, d.parallel);
  a.integer("weights", s.weights, d.weights, 0, kMaxLayers);
}

template <class Archive>
void fields(Archive& a, EmbeddingSpec& s) {
  const EmbeddingSpec d;
  a.integer("vocabulary", s.vocabulary, d.vocabulary, 0, kMaxVocabulary);
  a.integer("start_id", s.start_id, d.start_id, -1, kMaxVocabulary);
  a.integer("points", s.points, d.points, 0, kMaxWidth);
  a.integer("sounds", s.sounds, d.sounds, 0, kMaxWidth);
  a.flag("point_map", s.point_map, d.point_map);
  a.flag("point_activation", s.point_activation, d.point_activation);
  a.flag("bias", s.bias, d.bias);
  a.integer("width", s.width, d.width, 0, kMaxWidth);
  a.number("scale", s.scale, d.scale, 0, kMaxNumber);
  a.flag("map", s.map, d.map);
  a.flag("map_bias", s.map_bias, d.map_bias);
  a.flag("map_first", s.map_first, d.map_first);
  a.integer("positions", s.positions, d.positions, 0, kMaxPositions);
  a.integer("position_width", s.position_width, d.position_width, 0, kMaxWidth);
  a.integer("position_offset", s.position_offset, d.position_offset, 0, kMaxPositions);
  a.integer("padding_id", s.padding_id, d.padding_id, -1, kMaxVocabulary);
  a.flag("padding_counts", s.padding_counts, d.padding_counts);
  a.flag("use_positions", s.use_positions, d.use_positions);
  a.integer("types", s.types, d.types, 0, kMaxTypes);
  a.object("norm", s.norm);
  a.object("norm_behind", s.norm_behind);
  a.integer("image_size", s.image_size, d.image_size, 0, kMaxWidth);
  a.integer("patch_size", s.patch_size, d.patch_size, 0, kMaxWidth);
  a.integer("channels", s.channels, d.channels, 0, kMaxWidth);
  a.integer("class_tokens", s.class_tokens, d.class_tokens, 1, kMaxTokens);
  a.integer("registers", s.registers, d.registers, 0, kMaxTokens);
}

template <class Archive>
void fields(Archive& a, OutputSpec& s) {
  const OutputSpec d;
  a.word("kind", s.kind, d.kind, head_kinds());
  a.integer("vocabulary", s.vocabulary, d.vocabulary, 0, kMaxVocabulary);
  a.integer("width", s.width, d.width, 0, kMaxWidth);
  a.flag("tied", s.tied, d.tied);
  a.flag("bias", s.bias, d.bias);
  a.flag("map_bias", s.map_bias, d.map_bias);
  a.word("activation", s.activation, d.activation, activations());
  a.object("norm", s.norm);
  a.number("scale", s.scale, d.scale, 0, kMaxNumber);
  a.number("softcap", s.softcap, d.softcap, 0, kMaxNumber);
  a.flag("last_token", s.last_token, d.last_token);
  a.integer("channels", s.channels, d.channels, 0, kMaxWidth);
}

template <class Archive>
void fields(Archive& a, InitSpec& s) {
  const InitSpec d;
  a.word("kind", s.kind, d.kind, init_kinds());
  a.number("std", s.std, d.std, 0, kMaxNumber);
  a.flag("same_blocks", s.same_blocks, d.same_blocks);
  a.number("cut", s.cut, d.cut, 0, kMaxNumber);
  a.options("stds", s.stds);
  a.options("constants", s.constants);
}

template <class Archive>
void fields(Archive& a, StreamSpec& s) {
  const StreamSpec d;
  a.text("name", s.name, d.name);
  a.object("embedding", s.embedding);
  a.list("blocks", s.blocks, kMaxLayers);
  a.object("final_norm", s.final_norm);
  a.integer("stored_blocks", s.stored_blocks, d.stored_blocks, 0, kMaxLayers);
}

template <class Archive>
void fields(Archive& a, ModelSpec& s) {
  const ModelSpec d;
  fields(a, static_cast<StreamSpec&>(s));
  a.text("architecture", s.architecture, d.architecture);
  a.integer("width", s.width, d.width, 1, kMaxWidth);
  a.word("position", s.position, d.position, position_kinds());
  a.object("output", s.output);
  a.object("init", s.init);
  a.list("sources", s.sources, 16);
}

// Leaves out what has its default value.
class Writer {
 public:
  void integer(const char* key, int64_t v, int64_t otherwise, int64_t, int64_t) { put(key, v, otherwise); }
  void number(const char* key, double v, double otherwise, double, double) { put(key, v, otherwise); }
  void flag(const char* key, bool v, bool otherwise) { put(key, v, otherwise); }
  void text(const char* key, const std::string& v, const std::string& otherwise) { put(key, v, otherwise); }
  void integers(const char* key, const std::vector<int64_t>& v, int64_t) { put_unless_empty(key, v); }
  void numbers(const char* key, const std::vector<double>& v) { put_unless_empty(key, v); }
  void options(const char* key, const std::map<std::string, double>& v) { put_unless_empty(key, v); }
  template <class T>
  void word(const char* key, T v, T otherwise, const std::vector<T>&) {
    if (v != otherwise) out[key] = to_string(v);
  }
  template <class T>
  void object(const char* key, T& v) {
    if (v == T{}) return;
    Writer inner;
    fields(inner, v);
    out[key] = std::move(inner.out);
  }
  template <class T>
  void list(const char* key, std::vector<T>& v, size_t) {
    for (T& item : v) {
      Writer inner;
      fields(inner, item);
      out[key].push_back(std::move(inner.out));
    }
  }
  void words(std::variant<AttentionSpec, MlpSpec>& v) {
    Writer inner;
    std::visit([&](auto& words) { fields(inner, words); }, v);
    out[std::holds_alternative<AttentionSpec>(v) ? kAttention : kMlp] = std::move(inner.out);
  }

  Json out = Json::object();

 private:
  template <class T>
  void put(const char* key, const T& v, const T& otherwise) {
    if (v != otherwise) out[key] = v;
  }
  template <class T>
  void put_unless_empty(const char* key, const T& v) {
    if (!v.empty()) out[key] = v;
  }
};

class Reader {
 public:
  Reader(const Json& in, const std::string& place) : in_(in), object_(in, place) {}

  void integer(const char* key, int64_t& v, int64_t otherwise, int64_t low, int64_t high) {
    v = object_.integer(known(key), low, high, otherwise);
  }
  void number(const char* key, double& v, double otherwise, double low, double high) {
    v = object_.number(known(key), low, high, otherwise);
  }
  void flag(const char* key, bool& v, bool otherwise) { v = object_.boolean(known(key), otherwise); }
  void text(const char* key, std::string& v, const std::string& otherwise) {
    v = object_.string(known(key), otherwise);
  }
  void integers(const char* key, std::vector<int64_t>& v, int64_t high) {
    each(key, kMaxHeads, [&](const Json& item) {
      if (!item.is_number_integer() || item < 0 || item > high) refuse(key);
      v.push_back(item.get<int64_t>());
    });
  }
  void numbers(const char* key, std::vector<double>& v) {
    each(key, kMaxHeadWidth, [&](const Json& item) {
      if (!item.is_number()) refuse(key);
      v.push_back(item.get<double>());
    });
  }
  void options(const char* key, std::map<std::string, double>& v) {
    if (!object_.has(known(key))) return;
    if (!object_.at(key).is_object()) refuse(key);
    for (const auto& [name, number] : object_.at(key).items()) {
      if (!number.is_number()) refuse(key);
      v[name] = number.get<double>();
    }
  }
  template <class T>
  void word(const char* key, T& v, T otherwise, const std::vector<T>& all) {
    const std::string name = object_.string(known(key), std::string(to_string(otherwise)));
    std::vector<std::string> names;
    for (const T kind : all) {
      if (name == to_string(kind)) {
        v = kind;
        return;
      }
      names.emplace_back(to_string(kind));
    }
    throw unknown_name(key, name, names).in(object_.place());
  }
  template <class T>
  void object(const char* key, T& v) {
    if (object_.has(known(key))) read(object_.at(key), key, v);
  }
  template <class T>
  void list(const char* key, std::vector<T>& v, size_t most) {
    each(key, most, [&](const Json& item) { read(item, key, v.emplace_back()); });
  }
  void words(std::variant<AttentionSpec, MlpSpec>& v) {
    if (object_.has(known(kAttention)) == object_.has(known(kMlp)))
      throw Error("a branch has either \"attention\" or \"mlp\"").in(object_.place());
    if (object_.has(kAttention))
      read(object_.at(kAttention), kAttention, v.emplace<AttentionSpec>());
    else
      read(object_.at(kMlp), kMlp, v.emplace<MlpSpec>());
  }

  /// Refuses what no field asked for: a word that nobody knows would change nothing without saying so.
  void finish() const {
    for (const auto& [key, value] : in_.items())
      if (!known_.count(key))
        throw unknown_name("word", key, {known_.begin(), known_.end()}).in(object_.place());
  }

 private:
  const char* known(const char* key) {
    known_.insert(key);
    return key;
  }
  [[noreturn]] void refuse(const char* key) const {
    throw Error(fmt::format("\"{}\" holds what it should not", key)).in(object_.place());
  }
  template <class Call>
  void each(const char* key, size_t most, Call call) {
    if (!object_.has(known(key))) return;
    const Json& items = object_.at(key);
    if (!items.is_array() || items.size() > most) refuse(key);
    for (const Json& item : items) call(item);
  }
  template <class T>
  void read(const Json& in, const char* key, T& v) {
    Reader inner(in, object_.place() + ", " + key);
    fields(inner, v);
    inner.finish();
  }

  const Json& in_;
  JsonObject object_;
  std::set<std::string> known_;
};

}  // namespace

Json to_json(const ModelSpec& spec) {
  Writer writer;
  ModelSpec copy = spec;
  fields(writer, copy);
  return std::move(writer.out);
}

ModelSpec spec_from_json(const Json& json, const std::string& place) {
  Reader reader(json, place);
  ModelSpec spec;
  fields(reader, spec);
  reader.finish();
  return spec;
}

}  // namespace rankscope
