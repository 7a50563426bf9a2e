// Post-processors: special tokens around the sequences, and token types.
#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "text/pieces.h"
#include "text/vocabulary.h"

namespace rankscope::text {
namespace {

constexpr size_t kMostPieces = 4096;  // ids of one template

void append(Encoding& out, const Encoding& part) {
  out.ids.insert(out.ids.end(), part.ids.begin(), part.ids.end());
  out.types.insert(out.types.end(), part.types.begin(), part.types.end());
  out.special.insert(out.special.end(), part.special.begin(), part.special.end());
}

void append_special(Encoding& out, int64_t id, int64_t type) {
  out.ids.push_back(id);
  out.types.push_back(type);
  out.special.push_back(true);
}

Encoding with_type(Encoding encoding, int64_t type) {
  encoding.types.assign(encoding.ids.size(), type);
  return encoding;
}

/// Puts the two behind each other and nothing between: also what happens without a post-processor.
struct Plain : PostProcessor {
  Encoding process(Encoding text, const Encoding* pair, bool) const override {
    if (pair != nullptr) append(text, *pair);
    return text;
  }
};

struct Template : PostProcessor {
  struct Part {
    int sequence = -1;         // 0 the text, 1 the pair, -1 special tokens
    std::vector<int64_t> ids;  // those tokens
    int64_t type = 0;
  };
  std::vector<Part> single, pair;

  Encoding process(Encoding text, const Encoding* second, bool add_special_tokens) const override {
    Encoding out;
    for (const Part& part : second != nullptr ? pair : single) {
      if (part.sequence == 0)
        append(out, with_type(text, part.type));
      else if (part.sequence == 1)
        append(out, with_type(second != nullptr ? *second : Encoding(), part.type));
      else if (add_special_tokens)
        for (const int64_t id : part.ids) append_special(out, id, part.type);
    }
    return out;
  }
};

// [CLS] A [SEP] B [SEP]
struct Bert : PostProcessor {
  int64_t cls = 0, sep = 0;

  Encoding process(Encoding text, const Encoding* pair, bool add_special_tokens) const override {
    if (!add_special_tokens) return Plain().process(std::move(text), pair, false);
    Encoding out;
    append_special(out, cls, 0);
    append(out, with_type(std::move(text), 0));
    append_special(out, sep, 0);
    if (pair == nullptr) return out;
    append(out, with_type(*pair, 1));
    append_special(out, sep, 1);
    return out;
  }
};

// <s> A </s> </s> B </s>, all of type 0
struct Roberta : PostProcessor {
  int64_t cls = 0, sep = 0;

  Encoding process(Encoding text, const Encoding* pair, bool add_special_tokens) const override {
    Encoding out;
    if (add_special_tokens) append_special(out, cls, 0);
    append(out, with_type(std::move(text), 0));
    if (add_special_tokens) append_special(out, sep, 0);
    if (pair == nullptr) return out;
    if (add_special_tokens) append_special(out, sep, 0);
    append(out, with_type(*pair, 0));
    if (add_special_tokens) append_special(out, sep, 0);
    return out;
  }
};

using SpecialTokens = std::map<std::string, std::vector<int64_t>>;

SpecialTokens read_special_tokens(const Json& value, const std::string& place) {
  if (!value.is_object()) throw Error("\"special_tokens\" should be an object").in(place);
  SpecialTokens out;
  for (const auto& [name, token] : value.items()) {
    const Json& ids = JsonObject(token, place).at("ids");
    for (const Json& id : ids.is_array() ? ids : Json::array({ids})) {
      const auto number = read_id(id);
      if (!number)
        throw Error(fmt::format("an id of the special token \"{}\" is not a whole number from 0 to {}",
                                printable(name), kLargestId))
            .in(place);
      out[name].push_back(*number);
    }
  }
  return out;
}

Template::Part read_part(const Json& value, const SpecialTokens& specials, const std::string& place) {
  const JsonObject object(value, place);
  const bool is_sequence = object.has("Sequence");
  if (!is_sequence && !object.has("SpecialToken"))
    throw Error("a template is made of \"Sequence\" and \"SpecialToken\" parts").in(place);
  const JsonObject inner(object.at(is_sequence ? "Sequence" : "SpecialToken"), place);
  Template::Part out;
  out.type = inner.integer("type_id", 0, kLargestId);
  const std::string id = inner.string("id");
  if (is_sequence) {
    if (id != "A" && id != "B")
      throw Error(fmt::format("there is no sequence \"{}\", only A and B", printable(id))).in(place);
    out.sequence = id == "A" ? 0 : 1;
    return out;
  }
  const auto it = specials.find(id);
  if (it == specials.end())
    throw Error(fmt::format("the template uses \"{}\", which is not among its special tokens", printable(id)))
        .in(place);
  out.ids = it->second;
  return out;
}

std::vector<Template::Part> read_parts(const JsonObject& object, const char* key,
                                       const SpecialTokens& specials) {
  const Json& list = object.at(key);
  if (!list.is_array()) throw Error(fmt::format("\"{}\" should be a list", key)).in(object.place());
  std::vector<Template::Part> out;
  size_t total = 0;
  for (const Json& value : list) {
    out.push_back(read_part(value, specials, object.place()));
    total += 1 + out.back().ids.size();
    if (total > kMostPieces)
      throw Error(fmt::format("the template \"{}\" has more than {} parts", key, kMostPieces))
          .in(object.place());
  }
  return out;
}

std::unique_ptr<PostProcessor> read_template(const JsonObject& object) {
  auto out = std::make_unique<Template>();
  const SpecialTokens specials = read_special_tokens(object.at("special_tokens"), object.place());
  out->single = read_parts(object, "single", specials);
  out->pair = read_parts(object, "pair", specials);
  for (const Template::Part& part : out->single)
    if (part.sequence == 1) throw Error("the template \"single\" uses the sequence B").in(object.place());
  return out;
}

// ["[SEP]", 102]
int64_t read_token_id(const JsonObject& object, const char* key) {
  const Json& value = object.at(key);
  const auto id = value.is_array() && value.size() == 2 ? read_id(value[1]) : std::nullopt;
  if (!id) throw Error(fmt::format("\"{}\" should be a token and its id", key)).in(object.place());
  return *id;
}

template <typename Kind>
std::unique_ptr<PostProcessor> read_fixed(const JsonObject& object) {
  auto out = std::make_unique<Kind>();
  out->cls = read_token_id(object, "cls");
  out->sep = read_token_id(object, "sep");
  return out;
}

// ByteLevel changes offsets only, which nobody asks for here. What is left must be one processor: the library
// does not define what a second one would do with the first one's special tokens.
std::unique_ptr<PostProcessor> read_sequence(const JsonObject& object) {
  std::unique_ptr<PostProcessor> out;
  for (const Json& member : sequence_members(object, "processors")) {
    std::unique_ptr<PostProcessor> next = read_post_processor(member, object.place());
    if (dynamic_cast<Plain*>(next.get()) != nullptr) continue;
    if (out)
      throw Error("two post-processors that add tokens, one behind the other, are not supported")
          .in(object.place());
    out = std::move(next);
  }
  return out ? std::move(out) : std::make_unique<Plain>();
}

}  // namespace

std::unique_ptr<PostProcessor> read_post_processor(const Json& value, const std::string& place) {
  if (value.is_null()) return std::make_unique<Plain>();
  const JsonObject object(value, place);
  const std::string type = object.string("type");
  if (type == "TemplateProcessing") return read_template(object);
  if (type == "BertProcessing") return read_fixed<Bert>(object);
  if (type == "RobertaProcessing") return read_fixed<Roberta>(object);
  if (type == "ByteLevel") return std::make_unique<Plain>();
  if (type == "Sequence") return read_sequence(object);
  refuse("post-processor", type,
         {"BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing"}, place);
}

}  // namespace rankscope::text
