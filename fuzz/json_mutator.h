// Included by the fuzzers whose input is JSON.
#pragma once

#include <algorithm>

#include "support.h"

/// Most of the time by structure, sometimes by bytes: broken JSON is an input, too.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  using namespace rankscope::fuzz;
  std::string text(text_of(data, size));
  if (seed % 5 == 0 || !JsonMutator(seed, most).mutate(text)) return LLVMFuzzerMutate(data, size, most);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}
