// Included by the fuzzers whose input is lines of words: tables, requests, studies, merges and ids.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>

#include "support.h"

namespace rankscope::fuzz {

/// One change to a line or to a word of one: left out, repeated, copied or moved elsewhere, replaced by what
/// readers stumble over; words are letters, digits and what is not ASCII, and what stands between them is
/// kept or changed too.
class LineMutator : Mutator {
 public:
  using Mutator::Mutator;

  /// False when the text has no line or became too long: then the bytes are mutated as bytes.
  bool mutate(std::string& text) {
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      lines.push_back(text.substr(at, end - at));
      at = end;
    }
    if (lines.empty()) return false;
    for (size_t changes = below(4) == 0 ? 3 : 1; changes > 0; --changes) change(lines);
    std::string out;
    for (const std::string& line : lines) out += line;
    if (out.size() > most_) return false;
    text = out;
    return true;
  }

 private:
  void change(std::vector<std::string>& lines) {
    if (lines.empty()) return;
    const size_t at = below(lines.size()), other = below(lines.size());
    switch (below(8)) {
      case 0:
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      case 1: {
        const std::string copy = lines[other];  // insert may move what a reference means
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), 1 + below(20), copy);
        return;
      }
      case 2:
        std::swap(lines[at], lines[other]);
        return;
      case 3:
        if (lines[at].ends_with('\n')) lines[at].pop_back();  // two lines are one
        return;
      default:
        change_word(lines[at], lines[other]);
    }
  }

  // Where the words of a line are: [begin, end).
  static std::vector<std::pair<size_t, size_t>> words_of(const std::string& line) {
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c >= 0x80; };
    std::vector<std::pair<size_t, size_t>> out;
    for (size_t at = 0; at < line.size(); ++at) {
      if (!is_word(static_cast<unsigned char>(line[at]))) continue;
      const size_t begin = at;
      while (at < line.size() && is_word(static_cast<unsigned char>(line[at]))) ++at;
      out.emplace_back(begin, at);
    }
    return out;
  }

  void change_word(std::string& line, const std::string& other) {
    const auto words = words_of(line), others = words_of(other);
    if (words.empty()) return;
    const auto [begin, end] = words[below(words.size())];
    const size_t size = end - begin;
    switch (below(5)) {
      case 0:
        line.replace(begin, size, interesting());
        return;
      case 1: {
        if (others.empty()) return;
        const auto [from, to] = others[below(others.size())];
        line.replace(begin, size, std::string(other, from, to - from));
        return;
      }
      case 2:
        line.replace(begin, size, mutated(line.substr(begin, size)));
        return;
      case 3:
        line.insert(end, separator() + interesting());
        return;
      default:
        if (end < line.size() && line[end] != '\n') line.replace(end, 1, separator());
    }
  }

  std::string separator() {
    static constexpr std::string_view kAll = ",;\t =:.[]{}\"'#%&?/|-+\r\\";
    return std::string(1, kAll[below(kAll.size())]);
  }

  std::string interesting() {
    static constexpr std::array<std::string_view, 16> kAll{"0",
                                                           "-1",
                                                           "9223372036854775807",
                                                           "9223372036854775808",
                                                           "2147483648",
                                                           "1e308",
                                                           "1e999",
                                                           "nan",
                                                           "inf",
                                                           "\"\"",
                                                           "true",
                                                           "=1+1",
                                                           "%00",
                                                           "[]",
                                                           "\xED\x95\x9C",
                                                           "\x1b[31m"};
    return below(8) == 0 ? std::string(below(300), 'a') : std::string(kAll[below(kAll.size())]);
  }
};

}  // namespace rankscope::fuzz

/// Most of the time by structure, sometimes by bytes: broken lines are an input, too.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  using namespace rankscope::fuzz;
  std::string text(text_of(data, size));
  if (seed % 3 == 0 || !LineMutator(seed, most).mutate(text)) return LLVMFuzzerMutate(data, size, most);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}
