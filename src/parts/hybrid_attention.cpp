// Attention that mixes softmax with its doubly normalised form, by a learned share per head
// (attention/hybrid_normalised.cpp reads it).
#include "parts/support/attention.h"

namespace rankscope {
namespace {

void build_hybrid_attention(PartBuilder& b) {
  output_map(b, attended(b));
  b.parameter("mix", {b.attention().heads}, 0);
}

}  // namespace

extern const Part part_hybrid_attention{
    .name = "hybrid_attention",
    .summary = "attention whose heads learn how much of it is doubly normalised",
    .kind = Part::Kind::attention,
    .variant = "hybrid_normalised",
    .build = build_hybrid_attention};

}  // namespace rankscope
