// How far the tests found each architecture from Hugging Face's own code: tiny random models, every hidden
// state and every pattern, relative to the largest value of the tensor. tests/scan/parity_test.cpp measures
// it, and fails where what is written here is no longer true. Knows nothing of torch.
#pragma once

#include <span>
#include <string_view>

namespace rankscope {

struct ParityRecord {
  std::string_view fixture;       // a folder of tests/fixtures/models/
  std::string_view architecture;  // a file of checkpoint/arch/
  double float32, float64;        // the largest difference, in either arithmetic
  bool formulas = false;          // beside the published formulas, not the original's code
};

std::span<const ParityRecord> parity_records();

}  // namespace rankscope
