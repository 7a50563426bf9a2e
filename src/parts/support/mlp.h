// The two MLPs, for parts that are one and for parts that have many.
#pragma once

#include "parts/program.h"

namespace rankscope {

void plain_mlp(PartBuilder& builder);
void gated_mlp(PartBuilder& builder);

}  // namespace rankscope
