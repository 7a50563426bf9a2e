#include "kernels/cpu/simd/kernels.h"

namespace rankscope::simd::RANKSCOPE_SIMD {

extern const Table table;
const Table table = {
    {attention_forward, attention_backward, skip_norm_forward, skip_norm_backward, squared_error, bias_relu,
     bias_relu_backward, linear_forward, linear_backward, delta_forward, delta_backward},
    {attention_forward, attention_backward, skip_norm_forward, skip_norm_backward, squared_error, bias_relu,
     bias_relu_backward, linear_forward, linear_backward, delta_forward, delta_backward},
    fill_normals,
    adamw_update,
    small_spectra_group,
    small_spectra,
    tridiagonalise,
    tridiagonal_eigenvalues,
    row_entropy,
    long_attention,
};

}  // namespace rankscope::simd::RANKSCOPE_SIMD
