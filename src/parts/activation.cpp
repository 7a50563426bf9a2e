// What is left of an MLP whose matrices are replaced by the identity: act(x).
#include "parts/program.h"

namespace rankscope {

extern const Part part_activation{.name = "activation",
                                  .summary = "act(x): an MLP whose matrices are the identity",
                                  .kind = Part::Kind::mlp,
                                  .build = [](PartBuilder& b) { b.activation(kInput, b.mlp().activation); }};

}  // namespace rankscope
