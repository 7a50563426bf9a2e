// AdamW over one flat buffer of parameters.
#pragma once

#include <cstdint>

namespace rankscope {

struct AdamW {
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, weight_decay = 0.0f;
};

/// One update, step counted from 1:  p -= lr * wd * p;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;
/// p -= lr * (m / (1 - b1^step)) / (sqrt(v / (1 - b2^step)) + eps).
void adamw_update(const AdamW& rule, float lr, int64_t step, int64_t count, const float* gradient,
                  float* parameter, float* m, float* v);

}  // namespace rankscope
