// For users of the library: the fused kernels as differentiable functions of tensors (docs/OPERATORS.md).
//
// These functions trust their callers: operands whose shapes, types or devices do not fit together as each
// header says are read out of bounds. The operators of the same names that torch's dispatcher has
// (torch.ops.rankscope) check theirs first.
#pragma once

#include <ATen/ATen.h>

#include "ops/adamw.h"
#include "ops/delta_attention.h"
#include "ops/linear.h"
#include "ops/linear_attention.h"
#include "ops/mlp.h"
#include "ops/neighbours.h"
#include "ops/normals.h"
#include "ops/pattern.h"
#include "ops/polynomial_attention.h"
#include "ops/projected_attention.h"
#include "ops/skip_norm.h"
#include "ops/small_attention.h"
#include "ops/squared_error.h"
