// Any text as a study's file: refused with an Error, or a study that says what it is in one line.
#include "line_mutator.h"
#include "studies/study.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  fuzz::reading([&] {
    const Study study = parse_study(fuzz::text_of(data, size), "fuzz", "fuzz.toml");
    if (study.runner.empty() || spec_text(study, {}).empty()) std::abort();
  });
  return 0;
}
