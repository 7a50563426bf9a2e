// Any text as a file of token ids: refused with an Error, or samples of ids in the range that is promised.
#include "line_mutator.h"
#include "text/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  static const fuzz::Scratch folder;
  fuzz::reading([&] {
    const auto samples = read_token_ids(folder.put("ids.txt", fuzz::text_of(data, size)).string());
    if (samples.empty()) std::abort();
    for (const auto& sample : samples)
      for (const auto* ids : {&sample.ids, &sample.decoder})
        for (const int64_t id : *ids)
          if (id < 0 || id > INT32_MAX) std::abort();
  });
  return 0;
}
