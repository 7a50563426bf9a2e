// Which files make a tokenizer; also known to builds that cannot read them.
#include "text/tokenizer.h"

namespace rankscope {

std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& folder) {
  const auto has = [&](const char* name) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(folder / name, ignored);
  };
  std::vector<const char*> names;
  if (has("tokenizer.json"))
    return {folder / "tokenizer.json"};
  else if (has("vocab.txt"))
    names = {"vocab.txt"};
  else if (has("vocab.json") && has("merges.txt"))
    names = {"vocab.json", "merges.txt"};
  else
    return {};
  std::vector<std::filesystem::path> out;
  for (const char* name : names) out.push_back(folder / name);
  for (const char* name : {"added_tokens.json", "tokenizer_config.json", "config.json"})
    if (has(name)) out.push_back(folder / name);
  return out;
}

}  // namespace rankscope
