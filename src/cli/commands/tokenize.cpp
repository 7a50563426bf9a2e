// rankscope tokenize: texts to ids, with nothing but the folder's tokenizer files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>

#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/model_folder.h"
#include "text/input.h"
#include "text/tokenizer.h"

namespace rankscope {
namespace {

struct TokenizeOptions {
  std::string folder, jsonl = "-";
  std::vector<std::string> texts;
  bool no_special = false, tokens = false;
};

// Every other command reads a file there; here the name itself would be the text.
void refuse_name(const std::string& text) {
  if (text == "-")
    throw usage_error("--text is the text itself here")
        .in("--text -")
        .hint("standard input without --text: {\"text\": ...} lines");
  std::error_code ignored;
  if (std::filesystem::exists(text, ignored) && !std::filesystem::is_directory(text, ignored))
    throw usage_error("--text is the text itself here, and this is the name of a file")
        .in("--text " + text)
        .hint(fmt::format("--text \"$(cat {})\", or --jsonl FILE for {{\"text\": ...}} lines",
                          to_copy(text, "FILE")));
}

std::vector<TextSample> samples(const TokenizeOptions& options, Io& io) {
  std::vector<TextSample> out;
  for (const std::string& text : options.texts) {
    refuse_name(text);
    out.push_back({text, std::nullopt, "--text"});
  }
  if (!out.empty()) return out;
  if (options.jsonl == "-") return read_text_jsonl(io.in, "standard input");
  return read_text_jsonl(options.jsonl);
}

int run_tokenize(const TokenizeOptions& options, Io& io) {
  if (!std::filesystem::exists(options.folder))
    throw Error("there is no such folder").in(options.folder).hint("check the path");
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(model_folder(options.folder, io));
  for (const TextSample& sample : samples(options, io)) {
    const Encoding encoding = sample.pair
                                  ? tokenizer->encode_pair(sample.text, *sample.pair, !options.no_special)
                                  : tokenizer->encode(sample.text, !options.no_special);
    io.out << fmt::format("{{\"ids\": [{}]", fmt::join(encoding.ids, ", "));
    const bool typed = std::ranges::any_of(encoding.types, [](int64_t type) { return type != 0; });
    if (sample.pair || typed) io.out << fmt::format(", \"types\": [{}]", fmt::join(encoding.types, ", "));
    if (options.tokens) {
      Json tokens = Json::array();
      for (const int64_t id : encoding.ids) tokens.push_back(tokenizer->token(id));
      io.out << ", \"tokens\": " << tokens.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    io.out << "}\n";
  }
  return 0;
}

std::function<int(Io&)> prepare_tokenize(CLI::App& app) {
  const auto options = std::make_shared<TokenizeOptions>();
  app.add_option("FOLDER", options->folder,
                 "Folder with tokenizer.json, vocab.txt, or vocab.json and merges.txt")
      ->required();
  const auto jsonl =
      app.add_option("--jsonl", options->jsonl,
                     "File of {\"text\": ..., \"text_pair\": ...} lines; - (the default) is stdin");
  app.add_option("--text", options->texts, "A text to encode instead, not a file's name; repeat for more")
      ->allow_extra_args(false)
      ->excludes(jsonl);
  app.add_flag("--no-special", options->no_special, "Leave out [CLS], <s> and the like");
  app.add_flag("--tokens", options->tokens, "Show the tokens beside their ids");
  return [options](Io& io) { return run_tokenize(*options, io); };
}

}  // namespace

extern const Command command_tokenize{
    .name = "tokenize",
    .summary = "Turn texts into token ids, one JSON line each",
    .examples = {"rankscope tokenize models/builtin --text \"the whale\" --tokens",
                 "rankscope tokenize models/builtin --jsonl texts.jsonl"},
    .prepare = prepare_tokenize};

}  // namespace rankscope
