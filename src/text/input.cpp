#include "text/input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "base/csv.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/suggest.h"

namespace rankscope {
namespace {

constexpr int64_t kLargestId = INT32_MAX;
constexpr uint64_t kLargestFile = 1ull << 30;
constexpr uint64_t kLargestStream = 1ull << 28;  // it grows as it is read, and doubles while it does
constexpr std::string_view kBlanks = " \t\r\n\v\f";
// A byte of a file may begin a value, an id, a cell or a sample, each of which takes many: of these there are
// no more than somebody has a use for.
constexpr size_t kMostValues = 1 << 24;   // of one line of JSON
constexpr size_t kMostIds = 1 << 24;      // of one sample
constexpr size_t kMostColumns = 1 << 16;  // of a table with tabs; CsvReader has the same

std::string name_of(const std::string& path) { return path == "-" ? "standard input" : path; }

// A stream has no size to look at first.
std::string read_stream(std::istream& in, const std::string& name) {
  std::string out;
  std::string piece(1 << 16, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
    const auto got = static_cast<size_t>(in.gcount());
    if (out.size() + got > kLargestStream)
      throw Error(fmt::format("the input has more than the {} bytes allowed here", kLargestStream))
          .in(name)
          .hint("a file may have four times as many");
    out.append(piece, 0, got);
  }
  return out;
}

// Bytes that begin no character of UTF-8 and belong to none.
size_t misplaced_bytes(std::string_view text) {
  size_t wrong = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t more = first < 0x80 ? 0 : first >= 0xC2 && first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    size_t followed = 0;
    while (followed < more && i + 1 + followed < text.size() &&
           (static_cast<unsigned char>(text[i + 1 + followed]) & 0xC0) == 0x80)
      ++followed;
    if (first >= 0x80 && (first < 0xC2 || first > 0xF4 || followed < more))
      ++wrong;
    else
      i += more;
  }
  return wrong;
}

// What is certainly no text, by how it begins; nothing else has a byte of zeros.
void refuse_binary(std::string_view content, const std::string& path) {
  const std::string name = name_of(path);
  if (content.starts_with("PAR1"))
    throw Error("this is a Parquet file, which is not read here")
        .in(name)
        .hint(fmt::format("python -c \"import pandas; pandas.read_parquet('{}').to_json('texts.jsonl', "
                          "orient='records', lines=True)\", then --text texts.jsonl --column NAME",
                          to_copy(name, "FILE")));
  constexpr std::array<std::array<std::string_view, 2>, 4> kPacked{
      {{"\x1F\x8B", "zcat"}, {"BZh", "bzcat"}, {"\xFD\x37zXZ", "xzcat"}, {"\x28\xB5\x2F\xFD", "zstdcat"}}};
  for (const auto& [magic, reader] : kPacked)
    if (content.starts_with(magic))
      throw Error("this file is compressed")
          .in(name)
          .hint(fmt::format("{} {} | rankscope ... --text -", reader, to_copy(name, "FILE")));
  if (content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF"))
    throw Error("this text is in UTF-16, and UTF-8 is read here")
        .in(name)
        .hint(fmt::format("iconv -f UTF-16 -t UTF-8 {} > utf8.txt", to_copy(name, "FILE")));
  if (content.starts_with("%PDF"))
    throw Error("this is a PDF, which is not read here")
        .in(name)
        .hint(fmt::format("pdftotext {} - | rankscope ... --text -", to_copy(name, "FILE")));
  if (content.starts_with("PK\x03\x04") || content.find('\0') != std::string_view::npos)
    throw Error("this is not a text: it holds binary data")
        .in(name)
        .hint("give plain text in UTF-8, JSONL, CSV or TSV");
  // A byte or two that went wrong are replaced later; a text in another encoding has one in every other line.
  if (1000 * misplaced_bytes(content) > content.size())
    throw Error("this text is not in UTF-8")
        .in(name)
        .hint(fmt::format("iconv -f ISO-8859-1 -t UTF-8 {} > utf8.txt", to_copy(name, "FILE")));
  const size_t first = content.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && content[first] == '[') {
    const size_t second = content.find_first_not_of(" \t\r\n", first + 1);
    const bool of_objects = second != std::string_view::npos && content[second] == '{';
    if (of_objects && Json::accept(content.begin(), content.end()))  // keeps nothing of it
      throw Error("this is one JSON array, and texts are read one a line")
          .in(name)
          .hint(fmt::format("jq -c '.[]' {} > texts.jsonl, then --text texts.jsonl --column NAME",
                            to_copy(name, "FILE")));
  }
}

std::string read_bytes(const std::string& path) {
  if (path == "-") return read_stream(std::cin, name_of(path));
  if (path.empty()) throw usage_error("expected a text file, but got an empty name").in("--text");
  std::error_code ignored;
  if (path.find(' ') != path.npos && !std::filesystem::exists(path, ignored))
    throw Error("there is no file of this name; if it is a sentence, it goes in by standard input")
        .in("--text " + printable(path, 60))
        .hint(fmt::format("echo \"{}\" | rankscope ... --text -",
                          path.find_first_of("\"$`\\!") == path.npos ? printable(path, 60) : "SENTENCE"));
  if (std::filesystem::is_directory(path, ignored))
    throw Error("expected a file, but got a folder").in(path).hint("name a file");
  if (std::filesystem::is_fifo(path, ignored))
    throw Error("this is a pipe, and nobody may ever write into it")
        .in(path)
        .hint("pipe into standard input and name it: zcat texts.gz | rankscope ... -");
  return read_file(path, kLargestFile);
}

std::string read_all(const std::string& path) {
  std::string content = read_bytes(path);
  refuse_binary(content, path);
  if (content.starts_with("\xEF\xBB\xBF")) content.erase(0, 3);  // a byte order mark is no text
  return content;
}

// Lines that hold more than blanks, without their ends, one after the other; they are counted from 1.
class Line {
 public:
  Line(std::string_view content, const std::string& name) : rest_(content), name_(name) {
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
  }
  bool next() {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      text = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (text.ends_with('\r')) text.remove_suffix(1);
      if (text.find_first_not_of(kBlanks) != text.npos) return true;
    }
    return false;
  }
  std::string place() const { return fmt::format("{}, line {}", name_, number_); }

  std::string_view text;

 private:
  std::string_view rest_;
  const std::string& name_;
  size_t number_ = 0;
};

// Keeps the first samples and counts the others; false: this one is to be counted only.
class Keeper {
 public:
  Keeper(const std::string& name, Unread* unread) : name_(name), unread_(unread) {}
  bool takes(size_t kept, size_t bytes) {
    if (kept < kMostSamples) return true;
    if (unread_ == nullptr)
      throw Error(fmt::format("the input has more than the {} samples allowed here", kMostSamples))
          .in(name_)
          .hint(fmt::format("split -l {}", kMostSamples));
    ++unread_->samples;
    unread_->bytes += bytes;
    return false;
  }

 private:
  const std::string& name_;
  Unread* unread_;
};

// Deep nesting would exhaust the stack of whatever copies the value; a line of ours has at most two levels.
Json parse_line(const Line& line) {
  int depth = 0;
  size_t values = 0;
  bool quoted = false;
  for (size_t i = 0; i < line.text.size(); ++i) {
    const char c = line.text[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (!quoted) depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth > 16) throw Error("the JSON is nested too deep").in(line.place());
    values += !quoted && (c == ',' || c == '[' || c == '{');
  }
  if (values > kMostValues)
    throw Error(fmt::format("the line holds more than the {} values allowed", kMostValues)).in(line.place());
  try {
    return Json::parse(line.text.begin(), line.text.end());
  } catch (const Json::out_of_range&) {
    throw Error("this JSON holds a number too large to read").in(line.place());
  } catch (const Json::parse_error&) {
    throw Error("this line is not valid JSON").in(line.place()).hint("JSONL has one JSON value per line");
  }
}

// Names the fields that could be meant.
Error no_such_field(const Json& json, const std::string& key, const Line& line, bool may_choose) {
  constexpr size_t kNamed = 20;
  std::vector<std::string> all, texts;
  for (const auto& [name, value] : json.items()) {
    if (all.size() < kNamed) all.push_back(printable(name, 40));
    if (texts.size() < kNamed && value.is_string()) texts.push_back(printable(name, 40));
  }
  const std::string hint = all.empty() ? "the object is empty"
                           : texts.empty()
                               ? fmt::format("none of its fields holds a text: {}", fmt::join(all, ", "))
                           : may_choose ? fmt::format("--column NAME, one of {}", fmt::join(texts, ", "))
                                        : fmt::format("its fields are {}", fmt::join(all, ", "));
  return Error(fmt::format("there is no field \"{}\"", printable(key, 40)),
               may_choose ? ErrorKind::usage : ErrorKind::run)
      .in(line.place())
      .hint(hint);
}

TextSample read_object(const Line& line, const std::string& key, bool may_choose) {
  const Json json = parse_line(line);
  const JsonObject object(json, line.place());
  if (json.contains(key) && json.at(key).is_null())
    throw Error(fmt::format("\"{}\" is null, and no text", printable(key, 40)))
        .in(line.place())
        .hint("leave the line out, or give it an empty text: \"\"");
  if (!object.has(key.c_str())) throw no_such_field(json, key, line, may_choose);
  TextSample out{object.string(key.c_str()), std::nullopt, line.place()};
  if (object.has("text_pair")) out.pair = object.string("text_pair");
  return out;
}

std::vector<TextSample> read_objects(std::string_view content, const std::string& name,
                                     const std::string& key, bool may_choose, Unread* unread) {
  std::vector<TextSample> out;
  Keeper keeper(name, unread);
  for (Line line(content, name); line.next();)
    if (keeper.takes(out.size(), line.text.size())) out.push_back(read_object(line, key, may_choose));
  if (out.empty()) throw Error("the file has no samples").in(name).hint("give one {\"text\": ...} per line");
  return out;
}

// A text whose first line is an object with "text" is taken for JSONL when no file name says so.
bool looks_like_jsonl(std::string_view content) {
  const std::string name;
  Line first(content.substr(0, content.find('\n')), name);
  if (!first.next() || first.text.front() != '{') return false;
  if (!Json::accept(first.text.begin(), first.text.end())) return false;
  const Json json = parse_line(first);  // refused where it is too much of it
  return json.is_object() && json.contains("text");
}

size_t column_of(const std::vector<std::string>& columns, const std::string& wanted,
                 const std::string& name) {
  std::vector<std::string> shown;
  for (const std::string& c : columns) shown.push_back(printable(c, 40));
  if (const auto usual = std::find(columns.begin(), columns.end(), "text");
      wanted.empty() && usual != columns.end())
    return static_cast<size_t>(usual - columns.begin());  // as JSONL has it
  if (wanted.empty())
    throw usage_error("this is a table: which of its columns holds the texts?")
        .in(name)
        .hint(fmt::format("--column NAME, one of {}", fmt::join(shown, ", ")));
  const auto at = std::find(columns.begin(), columns.end(), wanted);
  if (at == columns.end()) throw unknown_name("column", wanted, shown).in(name);
  return static_cast<size_t>(at - columns.begin());
}

// What stands between the cells of the first line: a comma, unless it has none and has something else.
char separator_of(std::string_view content) {
  const std::string_view first = content.substr(0, content.find('\n'));
  for (const char c : {',', ';', '\t'})
    if (first.find(c) != first.npos) return c;
  return ',';
}

std::vector<TextSample> read_csv_column(std::string_view content, const std::string& name,
                                        const std::string& column, Unread* unread) {
  CsvReader reader = CsvReader::of_texts(content, name, separator_of(content));
  std::vector<std::string> cells;
  if (!reader.next(cells)) throw Error("the table is empty").in(name);
  const size_t at = column_of(cells, column, name);
  std::vector<TextSample> out;
  Keeper keeper(name, unread);
  while (reader.next(cells))
    if (keeper.takes(out.size(), cells[at].size())) out.push_back({cells[at], std::nullopt, reader.where()});
  return out;
}

// Tabs have no quotes: a cell is what stands between two of them.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find('\t', at), line.size());
    out.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::vector<TextSample> read_tsv_column(std::string_view content, const std::string& name,
                                        const std::string& column, Unread* unread) {
  Line line(content, name);
  if (!line.next()) throw Error("the table is empty").in(name);
  const auto cells_in = [](std::string_view row) {
    return 1 + static_cast<size_t>(std::count(row.begin(), row.end(), '\t'));
  };
  if (cells_in(line.text) > kMostColumns)
    throw Error(fmt::format("the row has more than the {} cells allowed", kMostColumns)).in(line.place());
  const std::vector<std::string> columns = cells_of(line.text);
  const size_t at = column_of(columns, column, name);
  std::vector<TextSample> out;
  Keeper keeper(name, unread);
  while (line.next()) {
    if (!keeper.takes(out.size(), line.text.size())) continue;
    if (cells_in(line.text) != columns.size())
      throw Error(fmt::format("expected {} cells, but got {}", columns.size(), cells_in(line.text)))
          .in(line.place());
    out.push_back({std::move(cells_of(line.text)[at]), std::nullopt, line.place()});
  }
  return out;
}

int64_t checked_id(int64_t id, const Line& line) {
  if (id < 0 || id > kLargestId)
    throw Error(fmt::format("expected ids from 0 to {}, but got {}", kLargestId, id)).in(line.place());
  return id;
}

std::vector<int64_t> ids_from_list(const Json& list, const Line& line) {
  if (!list.is_array())
    throw Error("expected a list of ids, {\"ids\": [...]} or {\"input_ids\": [...]}").in(line.place());
  std::vector<int64_t> out;
  for (const Json& id : list) {
    if (!id.is_number_integer() || (id.is_number_unsigned() && id.get<uint64_t>() > INT64_MAX))
      throw Error(fmt::format("id {} of the list is not a whole number", out.size())).in(line.place());
    out.push_back(checked_id(id.get<int64_t>(), line));
  }
  return out;
}

// What stands beside the ids, a number for each of them; empty where it is not there.
std::vector<int64_t> beside_ids(const Json& json, const char* key, const Line& line, size_t count) {
  if (!json.contains(key)) return {};
  std::vector<int64_t> out = ids_from_list(json[key], line);
  if (out.size() != count)
    throw Error(fmt::format("\"{}\" has {} numbers for {} ids", key, out.size(), count)).in(line.place());
  return out;
}

// Ids whose mask is 0 are padding, which a scan needs none of: they go, and what stands beside them. How
// many.
int64_t leave_out_masked(const Json& json, const char* key, const Line& line, std::vector<int64_t>& ids,
                         std::vector<int64_t>* types = nullptr) {
  const std::vector<int64_t> mask = beside_ids(json, key, line, ids.size());
  size_t kept = 0;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0 && mask[i] != 1)
      throw Error(fmt::format("\"{}\" holds {}, and is 0 or 1", key, mask[i])).in(line.place());
    if (mask[i] == 0) continue;
    ids[kept] = ids[i];
    if (types != nullptr && !types->empty()) (*types)[kept] = (*types)[i];
    ++kept;
  }
  if (mask.empty()) return 0;
  ids.resize(kept);
  if (types != nullptr && !types->empty()) types->resize(kept);
  return static_cast<int64_t>(mask.size() - kept);
}

TokenIds ids_from_json(const Line& line) {
  const Json json = parse_line(line);
  const Json* list = &json;
  for (const char* key : {"ids", "input_ids"})
    if (json.is_object() && json.contains(key)) list = &json[key];
  TokenIds out{ids_from_list(*list, line)};
  if (json.is_object()) {
    for (const char* key : {"types", "token_type_ids"})
      if (out.types.empty()) out.types = beside_ids(json, key, line, out.ids.size());
    out.masked = leave_out_masked(json, "attention_mask", line, out.ids, &out.types);
  }
  constexpr const char* kDecoder = "decoder_input_ids";
  if (json.is_object() && json.contains(kDecoder)) {
    out.decoder = ids_from_list(json[kDecoder], line);
    out.masked += leave_out_masked(json, "decoder_attention_mask", line, out.decoder);
    if (out.decoder.empty()) throw Error("\"decoder_input_ids\" has no ids").in(line.place());
  }
  return out;
}

std::vector<int64_t> ids_from_words(const Line& line) {
  constexpr std::string_view separators = " \t\r\v\f,";
  std::vector<int64_t> out;
  for (size_t at = line.text.find_first_not_of(separators); at != line.text.npos;) {
    const size_t end = std::min(line.text.find_first_of(separators, at), line.text.size());
    const std::string_view word = line.text.substr(at, end - at);
    int64_t id = 0;
    const auto [rest, fault] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (fault != std::errc() || rest != word.data() + word.size())
      throw Error(fmt::format("\"{}\" is not a token id", printable(word)))
          .in(line.place())
          .hint("ids are whole numbers separated by blanks or commas");
    if (out.size() == kMostIds)
      throw Error(fmt::format("the sample has more than the {} ids allowed", kMostIds)).in(line.place());
    out.push_back(checked_id(id, line));
    at = line.text.find_first_not_of(separators, end);
  }
  return out;
}

}  // namespace

std::vector<TextSample> read_text(const std::string& path, bool whole, const std::string& column,
                                  Unread* unread) {
  const std::string content = read_all(path), name = name_of(path);
  if (path.ends_with(".jsonl") || (path == "-" && looks_like_jsonl(content)))
    return read_objects(content, name, column.empty() ? "text" : column, true, unread);
  if (path.ends_with(".csv")) return read_csv_column(content, name, column, unread);
  if (path.ends_with(".tsv")) return read_tsv_column(content, name, column, unread);
  if (!column.empty())
    throw usage_error(
        "--column names a column of a table (.csv, .tsv) or a key of JSONL (.jsonl), and this is neither")
        .in(name);
  std::vector<TextSample> out;
  Keeper keeper(name, unread);
  for (Line line(content, name); line.next();) {
    if (whole) return {{content, std::nullopt, name}};
    if (keeper.takes(out.size(), line.text.size()))
      out.push_back({std::string(line.text), std::nullopt, line.place(), true});
  }
  if (out.empty()) throw Error("the text is empty").in(name).hint("give one sample per line");
  return out;
}

std::vector<TextSample> read_text_jsonl(std::istream& in, const std::string& name) {
  return read_objects(read_stream(in, name), name, "text", false, nullptr);
}

std::vector<TextSample> read_text_jsonl(const std::string& path) {
  return read_objects(read_all(path), name_of(path), "text", false, nullptr);
}

std::vector<TokenIds> read_token_ids(const std::string& path, Unread* unread) {
  const std::string content = read_all(path), name = name_of(path);
  std::vector<TokenIds> out;
  Keeper keeper(name, unread);
  for (Line line(content, name); line.next();) {
    if (!keeper.takes(out.size(), line.text.size())) continue;
    const char first = line.text[line.text.find_first_not_of(kBlanks)];
    out.push_back(first == '[' || first == '{' ? ids_from_json(line) : TokenIds{ids_from_words(line)});
    if (out.back().ids.empty()) throw Error("this sample has no ids").in(line.place());
  }
  if (out.empty())
    throw Error("the file has no token ids").in(name).hint("give one sample per line, as 101 2023 102");
  return out;
}

}  // namespace rankscope
