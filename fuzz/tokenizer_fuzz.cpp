// Any text as a tokenizer.json: refused with an Error, or a tokenizer that gives known ids for any text.
#include "json_mutator.h"
#include "text/load.h"

namespace {

void check(const rankscope::Tokenizer& tokenizer, std::string_view text) {
  const rankscope::Encoding single = tokenizer.encode(text);
  if (single.types.size() != single.ids.size() || single.special.size() != single.ids.size()) std::abort();
  const rankscope::Encoding pair = tokenizer.encode_pair(text, "the whale", false);
  for (const int64_t id : pair.ids)
    if (id < 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::reading([&] {
    const std::unique_ptr<Tokenizer> tokenizer = tokenizer_from_text(text, "tokenizer.json");
    // The file itself is one of the texts: it holds the very tokens and patterns that matter.
    for (const std::string_view each :
         {std::string_view(""), std::string_view(" Don't  stop\n\n123 é\u0301 中 🙂 [MASK]<s> \xFF"),
          text.substr(0, 2000)}) {
      try {
        check(*tokenizer, each);
      } catch (const Error& error) {
        if (error.render().empty()) std::abort();
      }
    }
  });
  return 0;
}
