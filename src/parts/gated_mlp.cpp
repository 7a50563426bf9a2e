// The gated MLP of Llama and its kin: W_out (act(W_gate x) * W_in x).
#include "parts/support/mlp.h"

namespace rankscope {

extern const Part part_gated_mlp{.name = "gated_mlp",
                                 .summary = "W_out (act(W_gate x) * W_in x)",
                                 .kind = Part::Kind::mlp,
                                 .sites = {{"mlp.hook_pre_linear", "what the activated gate multiplies"}},
                                 .build = [](PartBuilder& b) { gated_mlp(b); }};

}  // namespace rankscope
