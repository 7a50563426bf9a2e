// The arithmetic of products on a GPU: float32, or TF32 where somebody asks for it, with its error beside it.
#pragma once

#include <string>

#include "base/json.h"
#include "model/batch.h"
#include "pass/request.h"
#include "tensors/weights.h"

namespace rankscope {

/// Products of float32 numbers on a GPU are TF32's from now on, or float32's.
void allow_tf32(bool allowed);

/// A word nobody knows, or one that device or dtype cannot keep, is a usage error.
void check_precision(const ScanRequest& request);

/// How far TF32 moves the hidden states of the batch: the largest difference after a block, of the largest
/// value there. Leaves TF32 allowed.
double tf32_error(const ModelSpec& spec, WeightSource& source, const Batch& batch);

/// What the manifest says of it: nothing more than the word where it is float32.
void add_precision(Json& manifest, const ScanRequest& request, const ModelSpec& spec, WeightSource& source,
                   const Batch& batch);

}  // namespace rankscope
