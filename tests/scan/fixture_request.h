// What most tests of a measurement ask for: random tokens through a small model, in double precision.
#pragma once

#include <string>

#include "scan/scan.h"
#include "support/source_tree.h"

namespace rankscope::test {

inline ScanRequest random_tokens_through(const std::string& fixture, int64_t samples, int64_t length) {
  ScanRequest r;
  r.model = fixtures() / "models" / fixture;
  r.random_tokens = true;
  r.samples = samples;
  r.max_length = length;
  r.dtype = "float64";
  return r;
}

}  // namespace rankscope::test
