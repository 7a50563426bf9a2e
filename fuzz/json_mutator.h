// Included by the fuzzers whose input is JSON.
#pragma once

#include "support.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return rankscope::fuzz::mutate_json(data, size, most, seed);
}
