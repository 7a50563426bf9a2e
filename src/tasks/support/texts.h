// Texts to memorise: of a file, or synthetic.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

struct Texts {
  std::vector<std::vector<int64_t>> ids;  // one list a text
  int64_t vocabulary = 0;
};

/// Lower-case words and single marks: "Iraq's yet." gives iraq ' s yet . Bytes of other scripts are letters.
std::vector<std::string> words_of(std::string_view text);

/// The first `count` texts of a file, [CLS] a [SEP] b [SEP] each, cut to `tokens`. A .tsv file has a header
/// that names sentence1 and perhaps sentence2; any other holds a text a line. Of a folder, its first .tsv or
/// .txt file is read; its tokenizer.json, where it has one, takes the place of words_of.
Texts read_texts(const std::filesystem::path& path, int64_t count, int64_t tokens);

/// Texts of 20 to `tokens` words whose frequencies fall as one over their rank.
Texts synthetic_texts(int64_t count, int64_t tokens, uint64_t seed);

}  // namespace rankscope
