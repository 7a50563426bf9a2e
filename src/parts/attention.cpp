// Attention: every head compares queries with keys and carries values, and one map joins what they carried.
#include "parts/support/attention.h"

namespace rankscope {

extern const Part part_attention{
    .name = "attention",
    .summary = "softmax or another pattern over keys, times values, and one output map",
    .kind = Part::Kind::attention,
    .heads_are_a_reshape = true,
    .build = [](PartBuilder& b) { output_map(b, attended(b)); }};

}  // namespace rankscope
