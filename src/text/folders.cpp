#include "text/folders.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "text/load.h"
#include "text/pieces.h"
#include "text/unicode.h"

namespace rankscope {
namespace text {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kLargestFile = 256u << 20;

Json optional_json(const fs::path& path) {
  return fs::exists(path) ? read_json(path, kLargestFile) : Json::object();
}

/// tokenizer_config.json and config.json beside the vocabulary.
struct Settings {
  explicit Settings(const fs::path& folder)
      : tokenizer_json(optional_json(folder / "tokenizer_config.json")),
        model_json(optional_json(folder / "config.json")),
        tokenizer(tokenizer_json, (folder / "tokenizer_config.json").string()),
        model(model_json, (folder / "config.json").string()) {}

  // A special token is a string, or an object with its content.
  std::string token(const char* key, const std::string& otherwise) const {
    if (!tokenizer.has(key)) return otherwise;
    if (tokenizer.at(key).is_object())
      return JsonObject(tokenizer.at(key), tokenizer.place()).string("content");
    return tokenizer.string(key);
  }

  const Json tokenizer_json, model_json;
  const JsonObject tokenizer, model;
};

std::vector<std::string> read_lines(const fs::path& path) {
  const std::string content = read_file(path, kLargestFile);
  if (repair_utf8(content) != content) throw Error("the file is not valid UTF-8").in(path.string());
  std::vector<std::string> out;
  for (size_t at = 0; at < content.size();) {
    const size_t end = std::min(content.find('\n', at), content.size());
    std::string line = content.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    out.push_back(std::move(line));
    at = end + 1;
  }
  return out;
}

Json added_token(const std::string& content, int64_t id, bool lstrip = false) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", lstrip},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

int64_t need(const Json& vocab, const std::string& token, const fs::path& path) {
  if (const auto it = vocab.find(token); it != vocab.end() && it->is_number_integer())
    return it->get<int64_t>();
  throw Error(fmt::format("the special token \"{}\" is not in the vocabulary", printable(token)))
      .in(path.string());
}

// Special tokens that the vocabulary has are found in the text; the others are no one's business.
Json special_tokens(const Json& vocab, const std::set<std::string>& names, const std::string& mask) {
  Json out = Json::array();
  for (const std::string& name : names)
    if (vocab.contains(name) && vocab[name].is_number_integer())
      out.push_back(added_token(name, vocab[name].get<int64_t>(), name == mask));
  return out;
}

bool is_roberta(const Settings& settings, const Json& vocab, const fs::path& folder) {
  std::string name = settings.tokenizer.string("tokenizer_class", "");
  if (name.empty()) name = settings.model.string("model_type", "");
  if (name == "RobertaTokenizer" || name == "RobertaTokenizerFast" || name == "roberta") return true;
  if (name == "GPT2Tokenizer" || name == "GPT2TokenizerFast" || name == "gpt2") return false;
  // Other byte-level tokenizers cut the text by other rules, which only their tokenizer.json says.
  if (!name.empty())
    refuse("tokenizer of vocab.json and merges.txt", name, {"gpt2", "roberta"}, folder.string());
  return vocab.contains("<s>") && vocab.contains("</s>");
}

// The classes that cut text as BERT's does; other ones with a vocab.txt cut it otherwise.
void require_bert(const Settings& settings, const fs::path& folder) {
  std::string name = settings.tokenizer.string("tokenizer_class", "");
  if (name.empty()) name = settings.model.string("tokenizer_class", "");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  static const std::set<std::string> known{"",
                                           "BertTokenizer",
                                           "ConvBertTokenizer",
                                           "DistilBertTokenizer",
                                           "ElectraTokenizer",
                                           "LayoutLMTokenizer",
                                           "MobileBertTokenizer",
                                           "SqueezeBertTokenizer"};
  if (!known.contains(name))
    refuse("tokenizer of vocab.txt", name, {"BertTokenizer", "DistilBertTokenizer"}, folder.string());
  for (const char* key : {"word_tokenizer_type", "subword_tokenizer_type"})
    if (settings.tokenizer.has(key) || settings.model.has(key))
      throw Error(fmt::format("the tokenizer is chosen by \"{}\", which is not supported", key))
          .in(folder.string())
          .hint("add the model's tokenizer.json, or pass --token-ids");
}

// Tokens that were added to a vocabulary: in a file of their own, or since version 4.34 of the library in
// tokenizer_config.json.
void add_tokens(Json& list, const Settings& settings, const fs::path& folder) {
  std::map<int64_t, Json> more;  // they take ids in this order
  std::set<std::string> seen;
  for (const Json& token : list) seen.insert(token.at("content").get<std::string>());
  if (settings.tokenizer.has("added_tokens_decoder")) {
    const Json& by_id = settings.tokenizer.at("added_tokens_decoder");
    const std::string place = settings.tokenizer.place() + ", added_tokens_decoder";
    if (!by_id.is_object()) throw Error("expected an object of ids and tokens").in(place);
    for (const auto& [id, value] : by_id.items()) {
      const JsonObject one(value, place);
      int64_t number = 0;
      const auto [end, fault] = std::from_chars(id.data(), id.data() + id.size(), number);
      if (fault != std::errc{} || end != id.data() + id.size() || number < 0)
        throw Error(fmt::format("\"{}\" is no id", printable(id))).in(place);
      const std::string content = one.string("content");
      if (!seen.insert(content).second) continue;
      Json token = value;
      token["id"] = number;
      more[number] = std::move(token);
    }
  }
  const fs::path file = folder / "added_tokens.json";
  const Json ids = optional_json(file);
  if (!ids.is_object()) throw Error("expected an object of tokens and ids").in(file.string());
  for (const auto& [content, id] : ids.items()) {
    if (!id.is_number_integer())
      throw Error(fmt::format("the id of \"{}\" should be a whole number", printable(content)))
          .in(file.string());
    if (!seen.insert(content).second) continue;
    Json token = added_token(content, id.get<int64_t>());
    token["special"] = false, token["normalized"] = true;
    more[id.get<int64_t>()] = std::move(token);
  }
  for (auto& [id, token] : more) list.push_back(std::move(token));
}

Json special_part(const std::string& name, int type) {
  return {{"SpecialToken", {{"id", name}, {"type_id", type}}}};
}
Json sequence_part(const char* name, int type) { return {{"Sequence", {{"id", name}, {"type_id", type}}}}; }

// A first token in front of a text, and of a second one.
Json bos_template(const std::string& bos, int64_t id) {
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({special_part(bos, 0), sequence_part("A", 0)})},
          {"pair", Json::array({special_part(bos, 0), sequence_part("A", 0), special_part(bos, 1),
                                sequence_part("B", 1)})},
          {"special_tokens", {{bos, {{"ids", Json::array({id})}}}}}};
}

// Llama's and Gemma's classes put a first token in front of every text where tokenizer_config.json says so,
// though the post-processor of tokenizer.json may put none there (DeepSeek-V3).
void put_first_token(Json& file, const fs::path& folder) {
  const Settings settings(folder);
  static const std::set<std::string> classes{"GemmaTokenizer", "GemmaTokenizerFast", "LlamaTokenizer",
                                             "LlamaTokenizerFast"};
  if (!file.is_object() || !classes.contains(settings.tokenizer.string("tokenizer_class", "")) ||
      !settings.tokenizer.boolean("add_bos_token", false))
    return;
  const Json own = file.value("post_processor", Json());
  if (!own.is_null() && !(own.is_object() && own.value("type", Json()) == "ByteLevel")) return;
  const std::string bos = settings.token("bos_token", "");
  for (const Json& token : file.value("added_tokens", Json::array()))
    if (token.is_object() && token.value("content", Json()) == bos &&
        token.value("id", Json()).is_number_integer())
      file["post_processor"] = bos_template(bos, token["id"].get<int64_t>());
}

}  // namespace

Json from_vocab_txt(const fs::path& folder) {
  const fs::path path = folder / "vocab.txt";
  const Settings settings(folder);
  require_bert(settings, folder);
  Json vocab = Json::object();
  int64_t id = 0;
  for (std::string& line : read_lines(path))
    vocab[std::move(line)] = id++;  // of equal lines the last one counts
  const std::string unk = settings.token("unk_token", "[UNK]"), cls = settings.token("cls_token", "[CLS]"),
                    sep = settings.token("sep_token", "[SEP]"), pad = settings.token("pad_token", "[PAD]"),
                    mask = settings.token("mask_token", "[MASK]");
  const int64_t cls_id = need(vocab, cls, path), sep_id = need(vocab, sep, path);
  const bool lowercase = settings.tokenizer.boolean("do_lower_case", true);
  Json added = special_tokens(vocab, {unk, cls, sep, pad, mask}, "");
  add_tokens(added, settings, folder);
  return {{"added_tokens", std::move(added)},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", settings.tokenizer.boolean("tokenize_chinese_chars", true)},
            {"strip_accents", settings.tokenizer.boolean("strip_accents", lowercase)},
            {"lowercase", lowercase}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"model", {{"type", "WordPiece"}, {"unk_token", unk}, {"vocab", std::move(vocab)}}},
          {"post_processor",
           {{"type", "BertProcessing"},
            {"sep", Json::array({sep, sep_id})},
            {"cls", Json::array({cls, cls_id})}}}};
}

Json from_vocab_and_merges(const fs::path& folder) {
  const fs::path path = folder / "vocab.json";
  const Settings settings(folder);
  Json vocab = read_json(path, kLargestFile);
  if (!vocab.is_object()) throw Error("expected an object of tokens and ids").in(path.string());
  Json merges = Json::array();
  for (std::string& line : read_lines(folder / "merges.txt"))
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(std::move(line));

  const bool roberta = is_roberta(settings, vocab, folder);
  const bool prefix = settings.tokenizer.boolean("add_prefix_space", false);
  Json out{{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", prefix}}}};
  if (roberta) {
    const std::string cls = settings.token("cls_token", "<s>"), sep = settings.token("sep_token", "</s>"),
                      mask = settings.token("mask_token", "<mask>");
    out["added_tokens"] = special_tokens(
        vocab, {cls, sep, mask, settings.token("unk_token", "<unk>"), settings.token("pad_token", "<pad>")},
        mask);
    out["post_processor"] = {{"type", "RobertaProcessing"},
                             {"sep", Json::array({sep, need(vocab, sep, path)})},
                             {"cls", Json::array({cls, need(vocab, cls, path)})}};
  } else {
    const std::string bos = settings.token("bos_token", "<|endoftext|>");
    out["added_tokens"] = special_tokens(
        vocab,
        {bos, settings.token("eos_token", "<|endoftext|>"), settings.token("unk_token", "<|endoftext|>")},
        "");
    if (settings.tokenizer.boolean("add_bos_token", false))
      out["post_processor"] = bos_template(bos, need(vocab, bos, path));
  }
  add_tokens(out["added_tokens"], settings, folder);
  out["model"] = {{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", std::move(merges)}};
  return out;
}

}  // namespace text

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name); };
  if (has("tokenizer.json")) {
    const std::string place = (folder / "tokenizer.json").string();
    Json file = tokenizer_json(read_file(place, text::kLargestFile), place);
    text::put_first_token(file, folder);
    return tokenizer_from_json(file, place);
  }
  if (has("vocab.txt"))
    return tokenizer_from_json(text::from_vocab_txt(folder), (folder / "vocab.txt").string());
  if (has("vocab.json") && has("merges.txt"))
    return tokenizer_from_json(text::from_vocab_and_merges(folder), (folder / "vocab.json").string());
  throw Error(
      "there is no tokenizer here: neither tokenizer.json, nor vocab.txt, nor vocab.json with merges.txt")
      .in(folder.string())
      .hint("add the model's tokenizer.json, or pass --token-ids");
}

}  // namespace rankscope
