#include "kernels/cpu/simd/kernels.h"

namespace rankscope::simd::RANKSCOPE_SIMD {

extern const Table table;
const Table table = {attention_forward,  attention_forward, attention_backward,
                     attention_backward, fill_normals,      adamw_update};

}  // namespace rankscope::simd::RANKSCOPE_SIMD
