#include "tasks/support/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/philox.h"
#include "base/stream_name.h"
#include "text/tokenizer.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kSyntheticWords = 2000, kShortest = 20;
constexpr uint64_t kLargestFile = uint64_t{1} << 28;

struct Pair {
  std::string first;
  std::optional<std::string> second;
};

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out;
  std::stringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) out.push_back(field);
  return out;
}

fs::path file_of(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".tsv" || entry.path().extension() == ".txt")
      found.push_back(entry.path());
  if (found.empty()) throw Error("there is no .tsv or .txt file in this folder").in(path.string());
  return *std::min_element(found.begin(), found.end());
}

std::vector<Pair> pairs_of(const fs::path& file, int64_t count) {
  std::istringstream in(read_file(file, kLargestFile));
  std::string line;
  std::vector<Pair> out;
  std::optional<size_t> first, second;
  const bool table = file.extension() == ".tsv";
  if (table) {
    std::getline(in, line);
    const std::vector<std::string> names = fields_of(line);
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "sentence1") first = i;
      if (names[i] == "sentence2") second = i;
    }
    if (!first) throw Error("the header names no column sentence1").in(file.string());
  }
  while (static_cast<int64_t>(out.size()) < count && std::getline(in, line)) {
    if (line.empty()) continue;
    if (!table) {
      out.push_back({line, {}});
      continue;
    }
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() <= std::max(*first, second.value_or(0)))
      throw Error("a line has fewer fields than the header")
          .in(fmt::format("{}, text {}", file.string(), out.size()));
    out.push_back({fields[*first], second ? std::optional(fields[*second]) : std::nullopt});
  }
  if (static_cast<int64_t>(out.size()) < count)
    throw Error(fmt::format("the file has {} texts, but {} are asked for", out.size(), count))
        .in(file.string())
        .hint(fmt::format("train={}", out.size()));
  return out;
}

// Numbers words in the order in which they first come.
class Vocabulary {
 public:
  Vocabulary() : begin_(number("[CLS]")), end_(number("[SEP]")) {}
  std::vector<int64_t> encode(const Pair& pair) {
    std::vector<int64_t> out{begin_};
    add(pair.first, out);
    if (pair.second) add(*pair.second, out);
    return out;
  }
  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }

 private:
  int64_t number(const std::string& word) { return numbers_.emplace(word, size()).first->second; }
  void add(const std::string& text, std::vector<int64_t>& out) {
    for (const std::string& word : words_of(text)) out.push_back(number(word));
    out.push_back(end_);
  }
  std::map<std::string, int64_t> numbers_;
  int64_t begin_, end_;
};

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  bool inside = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = byte >= 0x80 || std::isalnum(byte) != 0;
    if (!letter && std::isspace(byte) != 0) {
      inside = false;
      continue;
    }
    if (!inside || !letter) out.emplace_back();
    out.back() += byte < 0x80 ? static_cast<char>(std::tolower(byte)) : c;
    inside = letter;
  }
  return out;
}

Texts read_texts(const fs::path& path, int64_t count, int64_t tokens) {
  if (!fs::exists(path))
    throw Error("there is no such file or folder").in(path.string()).hint("text=DIR-or-FILE");
  Texts out;
  const std::vector<Pair> pairs = pairs_of(file_of(path), count);
  if (fs::is_directory(path) && fs::exists(path / "tokenizer.json")) {
    const auto tokenizer = load_tokenizer(path);
    for (const Pair& p : pairs)
      out.ids.push_back(
          (p.second ? tokenizer->encode_pair(p.first, *p.second) : tokenizer->encode(p.first)).ids);
    out.vocabulary = tokenizer->vocabulary_size();
  } else {
    Vocabulary vocabulary;
    for (const Pair& p : pairs) out.ids.push_back(vocabulary.encode(p));
    out.vocabulary = vocabulary.size();
  }
  for (std::vector<int64_t>& ids : out.ids) ids.resize(std::min(ids.size(), static_cast<size_t>(tokens)));
  return out;
}

Texts synthetic_texts(int64_t count, int64_t tokens, uint64_t seed) {
  std::vector<double> up_to;  // cumulative weights of the ranks
  for (int64_t r = 1; r <= kSyntheticWords; ++r)
    up_to.push_back((up_to.empty() ? 0 : up_to.back()) + 1 / static_cast<double>(r));
  const Philox lengths{seed, stream_of("lengths"), 0}, words{seed, stream_of("words"), 0};
  const int64_t shortest = std::min(kShortest, tokens);
  Texts out{.ids = {}, .vocabulary = kSyntheticWords};
  for (int64_t t = 0; t < count; ++t) {
    const auto extra = lengths.below(static_cast<uint64_t>(tokens - shortest + 1), static_cast<uint64_t>(t));
    std::vector<int64_t>& ids = out.ids.emplace_back();
    for (int64_t i = 0; i < shortest + static_cast<int64_t>(extra); ++i) {
      const double at = up_to.back() * words.uniform(static_cast<uint64_t>(t * tokens + i));
      ids.push_back(std::lower_bound(up_to.begin(), up_to.end(), at) - up_to.begin());
    }
  }
  return out;
}

}  // namespace rankscope
