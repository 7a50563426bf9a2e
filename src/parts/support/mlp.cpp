#include "parts/support/mlp.h"

#include <cmath>

namespace rankscope {
namespace {

// A map as torch's Linear starts it.
Value map(PartBuilder& b, const char* letter, Value from, int64_t out, const char* site) {
  const double spread = 1 / std::sqrt(static_cast<double>(b.width_of(from)));
  return b.linear(letter, from, out,
                  {.bias = b.mlp().bias, .spread = spread, .bias_spread = spread, .site = site});
}

}  // namespace

void plain_mlp(PartBuilder& b) {
  const Value hidden = map(b, "in", kInput, b.mlp().width, "hook_pre");
  map(b, "out", b.activation(hidden, b.mlp().activation, "hook_post"), b.width(), "");
}

void gated_mlp(PartBuilder& b) {
  const Value hidden = map(b, "in", kInput, b.mlp().width, "hook_pre_linear");
  const Value gate = map(b, "gate", kInput, b.mlp().width, "hook_pre");
  const Value open = b.activation(gate, b.mlp().activation);
  map(b, "out", b.multiply(hidden, open, "hook_post"), b.width(), "");
}

}  // namespace rankscope
