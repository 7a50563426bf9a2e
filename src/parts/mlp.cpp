// The MLP of most models: W_out act(W_in x).
#include "parts/support/mlp.h"

namespace rankscope {

extern const Part part_mlp{
    .name = "mlp", .summary = "W_out act(W_in x)", .kind = Part::Kind::mlp, .build = [](PartBuilder& b) {
      plain_mlp(b);
    }};

}  // namespace rankscope
