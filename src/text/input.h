// Texts and token ids from files, for `scan` and `tokenize`. Needs no tokenizer.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace rankscope {

struct TextSample {
  std::string text;
  std::optional<std::string> pair;
  std::string place;  // "file, line 3", for errors
  bool line = false;  // of a plain text, and not a sample by itself: it may be one of a paragraph's
};

inline constexpr size_t kMostSamples = 1 << 20;  // more than can be asked for

/// What is behind the first kMostSamples samples, counted and not kept.
struct Unread {
  int64_t samples = 0;
  uint64_t bytes = 0;
};

/// Plain text: one sample per line that is not empty, or with `whole` the whole file as one. A file named
/// *.jsonl holds objects with "text" and maybe "text_pair", one named *.csv or *.tsv a table whose first row
/// names its columns; `column` says which one (which key) the texts are in. "-" reads standard input; JSON is
/// then known by its first line. Texts of a table and of JSONL may be empty. Files that hold no text are
/// refused by name. More than kMostSamples are an error where nobody wants to know of them (`unread`).
std::vector<TextSample> read_text(const std::string& path, bool whole = false, const std::string& column = "",
                                  Unread* unread = nullptr);

/// The objects of a JSONL stream; `name` is for errors.
std::vector<TextSample> read_text_jsonl(std::istream& in, const std::string& name);

/// The same of a file, whatever its name ends in.
std::vector<TextSample> read_text_jsonl(const std::string& path);

struct TokenIds {
  std::vector<int64_t> ids;
  std::vector<int64_t> decoder = {};  // what the decoder of an encoder reads, where the file says it
  std::vector<int64_t> types = {};    // of each id, where the file says them
  int64_t masked = 0;                 // ids that were left out, as their attention_mask is 0
  bool operator==(const TokenIds&) const = default;
};

/// One sample per line: ids separated by blanks or commas, a JSON list, or {"ids": [...]} or {"input_ids":
/// [...]}, either with "types" or "token_type_ids", with "attention_mask" and with "decoder_input_ids" beside
/// it or without.
std::vector<TokenIds> read_token_ids(const std::string& path, Unread* unread = nullptr);

}  // namespace rankscope
