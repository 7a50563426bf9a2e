// Any text as merges.txt beside a small vocabulary: refused with an Error, or a tokenizer that gives known
// ids.
#include "line_mutator.h"
#include "text/folders.h"
#include "text/load.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  static const fuzz::Scratch folder;
  static const bool ready = [] {
    Json vocab = Json::object();
    int id = 0;
    for (const char* piece : {"a", "b", "c", "ab", "bc", "abc", "aa", "aaaa", "<|endoftext|>", "<s>", "</s>"})
      vocab[piece] = id++;
    folder.put("vocab.json", vocab.dump());
    folder.put("config.json", R"({"model_type":"gpt2"})");
    return true;
  }();
  fuzz::reading([&] {
    folder.put("merges.txt", fuzz::text_of(data, size));
    const auto tokenizer = tokenizer_from_json(text::from_vocab_and_merges(folder.path()), "merges.txt");
    for (const int64_t each : tokenizer->encode("aaaabcab cba").ids)
      if (!ready || each < 0 || each > 10) std::abort();
  });
  return 0;
}
