// For users of the library: the fused kernels as differentiable functions of tensors (docs/OPERATORS.md).
#pragma once

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
