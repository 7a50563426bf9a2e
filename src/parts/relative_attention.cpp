// XLNet's attention: the pattern also looks at sinusoids of the distance and at segments, with parameters of
// its own (attention/relative.cpp reads them).
#include "parts/support/attention.h"

namespace rankscope {
namespace {

void build_relative_attention(PartBuilder& b) {
  const AttentionSpec& a = b.attention();
  const int64_t columns = a.heads * a.d_qk;
  const Value z = attended(b);
  output_map(b, z);
  b.parameter("W_R", {columns, b.width()}, 0);
  // Called biases, but XLNet draws them like its matrices; at initialisation they outweigh the queries.
  for (const char* name : {"r_w_bias", "r_r_bias", "r_s_bias"}) b.parameter(name, {columns}, 0);
  b.parameter("seg_embed", {2, columns}, 1);
}

}  // namespace

extern const Part part_relative_attention{
    .name = "relative_attention",
    .summary = "XLNet: attention whose scores also see distances and segments",
    .kind = Part::Kind::attention,
    .variant = "relative",
    .build = build_relative_attention};

}  // namespace rankscope
