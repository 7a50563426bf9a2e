// Differential attention (Ye et al. 2024): the difference of two softmaxes (attention/differential.cpp), and
// a norm on what each head carries. The paper's fixed factor behind that norm is left to its gain and to the
// output map.
#include "parts/support/attention.h"

namespace rankscope {
namespace {

void build_differential_attention(PartBuilder& b) {
  const AttentionSpec& a = b.attention();
  const NormSpec norm{.kind = NormKind::rms, .epsilon = 1e-5};
  output_map(b, b.norm("head_norm", attended(b), norm, a.heads));
  for (const char* name : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"})
    b.parameter(name, {a.d_qk / 2}, -1, 0.1);  // at zero they would stay there
}

}  // namespace

extern const Part part_differential_attention{
    .name = "differential_attention",
    .summary = "the difference of two softmaxes, and a norm on what each head carries",
    .kind = Part::Kind::attention,
    .variant = "differential",
    .build = build_differential_attention};

}  // namespace rankscope
