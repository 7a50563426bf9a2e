#include "model/ends.h"

#include <algorithm>

#include "model/batch_tensors.h"
#include "tensors/norm.h"

namespace rankscope {
namespace {

at::Tensor indices(const std::vector<int64_t>& values, const at::Tensor& like, int64_t shift = 0) {
  return at::tensor(values, at::kLong).add_(shift).to(like.device());
}

// [S, C, size, size] pixels to [S * (patches + 1), width]: class token first, then patches row by row.
at::Tensor embed_patches(const Batch& batch, const EmbeddingSpec& e, const Weights& w) {
  const int64_t S = batch.count(), p = e.patch_size, side = e.image_size / p;
  const at::Tensor& W = w.get("W_patch");
  at::Tensor x = at::tensor(batch.pixels, at::kFloat).to(W.options()).view({S, e.channels, side, p, side, p});
  x = x.permute({0, 2, 4, 1, 3, 5}).reshape({S, side * side, e.channels * p * p});
  x = at::linear(x, W, w.get("b_patch"));
  return at::cat({w.get("cls").view({1, 1, -1}).expand({S, 1, e.width}), x}, 1).reshape({-1, e.width});
}

// Positions go behind the token's own numbers, or on top of them.
at::Tensor with_positions(const at::Tensor& x, const EmbeddingSpec& e, const at::Tensor& pos) {
  return e.position_width > 0 ? at::cat({x, pos}, -1) : x + pos;
}

}  // namespace

at::Tensor embed(const Batch& batch, const ModelSpec& spec, const Weights& w, WeightSource& source) {
  const EmbeddingSpec& e = spec.embedding;
  return embedded(e.vocabulary > 0 ? source.rows("embed.W_E", at::tensor(batch.ids, at::kLong))
                                   : embed_patches(batch, e, w),
                  batch, e, w);
}

at::Tensor embedded(at::Tensor x, const Batch& batch, const EmbeddingSpec& e, const Weights& w) {
  if (e.point_map) x = at::linear(x, w.get("W_in"), w.get_or_none("b_in"));
  if (e.point_activation) x = at::gelu(x);
  if (e.positions > 0 && e.use_positions)
    x = with_positions(x, e,
                       w.get("W_pos").index_select(0, tensors_of(batch, x).positions + e.position_offset));
  else if (e.position_width > 0)  // nothing stands where others have their position
    x = at::constant_pad_nd(x, {0, e.position_width});
  if (e.types > 0) x = x + w.get("W_type").index_select(0, indices(batch.types, x));
  x = apply_norm(x, e.norm, w, "ln");
  if (e.map) x = at::linear(x, w.get("W_map"), w.get_or_none("b_map"));
  return apply_norm(x, e.norm_behind, w, "ln_post");
}

at::Tensor before_vocabulary(const at::Tensor& x, const ModelSpec& spec, const Weights& w) {
  if (spec.output.kind != HeadKind::transformed) return x;
  const at::Tensor h = apply_activation(at::linear(x, w.get("W_T"), w.get("b_T")), spec.output.activation);
  return apply_norm(h, spec.output.norm, w, "ln");
}

}  // namespace rankscope
