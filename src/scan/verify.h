// Parity with activations saved from another implementation. Knows nothing of torch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rankscope {

struct VerifyRequest {
  std::filesystem::path model, against;
  std::string dtype = "float32", device = "cpu";
  int threads = 0;
};

struct LayerError {
  std::string tensor;    // "hidden_states.3", "attentions.0", "logits"
  double largest = 0;    // largest absolute difference
  double mean = 0;       // mean absolute difference
  double magnitude = 0;  // largest absolute value of the reference
  double relative() const { return magnitude > 0 ? largest / magnitude : largest; }
};

/// Compares every hidden state and attention matrix the file holds, at the positions its mask allows.
std::vector<LayerError> verify(const VerifyRequest& request);

}  // namespace rankscope
