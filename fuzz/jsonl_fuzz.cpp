// Any text as JSONL of samples: refused with an Error, or samples with a text in each, which may be empty.
#include <sstream>

#include "support.h"
#include "text/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  fuzz::reading([&] {
    std::istringstream in{std::string(fuzz::text_of(data, size))};
    const auto samples = read_text_jsonl(in, "in.jsonl");
    if (samples.empty()) std::abort();
    for (const TextSample& sample : samples)
      if (sample.text.size() > size) std::abort();
  });
  return 0;
}

// Line by line: a line is JSON of its own.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  using namespace rankscope::fuzz;
  std::string text(text_of(data, size));
  const size_t line = seed % 7 == 0 ? 0 : text.find('\n', text.empty() ? 0 : seed % text.size());
  const size_t begin = line == std::string::npos ? text.rfind('\n') + 1 : line == 0 ? 0 : line + 1;
  const size_t end = std::min(text.find('\n', begin), text.size());
  std::string one = text.substr(begin, end - begin);
  if (seed % 5 == 0 || !JsonMutator(seed, most - (size - one.size())).mutate(one))
    return LLVMFuzzerMutate(data, size, most);
  text.replace(begin, end - begin, one);
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}
