#include "model/embed_and_unembed.h"

#include "model/batch_tensors.h"
#include "tensors/norm.h"
#include "tensors/operations.h"

namespace rankscope {
namespace {

at::Tensor indices(const std::vector<int64_t>& values, const at::Tensor& like, int64_t shift = 0) {
  return at::tensor(values, at::kLong).add_(shift).to(like.device());
}

// [S, C, size, size] pixels to [S * tokens, width]: class tokens first, then patches row by row. Positions
// come on top, and registers, which have none, between the two.
at::Tensor embed_patches(const Batch& batch, const EmbeddingSpec& e, const Weights& w) {
  const int64_t S = batch.count(), p = e.patch_size, side = e.image_size / p;
  const at::Tensor& W = w.get("W_patch");
  at::Tensor x =
      at::tensor(batch.pixels, at::kFloat).to(W.options()).view({S, e.channels, e.image_size, e.image_size});
  // What is left of an image behind its last whole patch is not seen.
  x = x.narrow(2, 0, side * p).narrow(3, 0, side * p).reshape({S, e.channels, side, p, side, p});
  x = x.permute({0, 2, 4, 1, 3, 5}).reshape({S, side * side, e.channels * p * p});
  x = at::linear(x, W, w.get_or_none("b_patch"));
  const auto learned = [&](const at::Tensor& tokens) {
    return tokens.reshape({1, -1, e.width}).expand({S, tokens.numel() / e.width, e.width});
  };
  std::vector<at::Tensor> front{learned(w.get("cls"))};
  if (e.class_tokens > 1) front.push_back(learned(w.get("class_tokens")));
  front.push_back(x);
  x = at::cat(front, 1);
  if (e.positions > 0 && e.use_positions) x = x + w.get("W_pos");
  if (e.registers > 0)
    x = at::cat({x.narrow(1, 0, e.class_tokens), learned(w.get("registers")),
                 x.narrow(1, e.class_tokens, side * side)},
                1);
  return x.reshape({-1, e.width});
}

// [S, bins, frames] to [S * tokens, width]: two convolutions over three frames, the second one at every other
// frame.
at::Tensor embed_sounds(const Batch& batch, const EmbeddingSpec& e, const Weights& w) {
  const at::Tensor& W = w.get("W_conv1");
  at::Tensor x = at::tensor(batch.pixels, at::kFloat).to(W.options()).view({batch.count(), e.sounds, -1});
  x = at::gelu(at::conv1d(x, W.view({e.width, e.sounds, 3}), w.get("b_conv1"), 1, 1));
  x = at::gelu(at::conv1d(x, w.get("W_conv2").view({e.width, e.width, 3}), w.get("b_conv2"), 2, 1));
  return x.transpose(1, 2).reshape({-1, e.width});
}

// Positions go behind the token's own numbers, or on top of them.
at::Tensor with_positions(const at::Tensor& x, const EmbeddingSpec& e, const at::Tensor& pos) {
  return e.position_width > 0 ? at::cat({x, pos}, -1) : x + pos;
}

}  // namespace

at::Tensor embed(const Batch& batch, const ModelSpec& spec, const Weights& w, WeightSource& source) {
  const EmbeddingSpec& e = spec.embedding;
  return embedded(e.vocabulary > 0 ? source.rows("embed.W_E", at::tensor(batch.ids, at::kLong))
                  : e.sounds > 0   ? embed_sounds(batch, e, w)
                                   : embed_patches(batch, e, w),
                  batch, e, w);
}

at::Tensor embedded(at::Tensor x, const Batch& batch, const EmbeddingSpec& e, const Weights& w) {
  if (e.point_map) x = at::linear(x, w.get("W_in"), w.get_or_none("b_in"));
  if (e.point_activation) x = at::gelu(x);
  if (e.scale != 1.0) x = x * e.scale;
  const auto map = [&] { x = at::linear(x, w.get("W_map"), w.get_or_none("b_map")); };
  if (e.map && e.map_first) map();
  if (e.positions > 0 && e.use_positions && e.image_size == 0)
    x = with_positions(x, e,
                       w.get("W_pos").index_select(0, tensors_of(batch, x).positions + e.position_offset));
  else if (e.position_width > 0)  // nothing stands where others have their position
    x = at::constant_pad_nd(x, {0, e.position_width});
  if (e.types > 0) x = x + w.get("W_type").index_select(0, indices(batch.types, x));
  x = apply_norm(x, e.norm, w, "ln");
  if (e.map && !e.map_first) map();
  return apply_norm(x, e.norm_behind, w, "ln_post");
}

at::Tensor before_vocabulary(const at::Tensor& x, const ModelSpec& spec, const Weights& w) {
  const OutputSpec& o = spec.output;
  at::Tensor h = x;
  if (o.kind == HeadKind::transformed)
    h = apply_norm(apply_activation(at::linear(x, w.get("W_T"), w.get_or_none("b_T")), o.activation), o.norm,
                   w, "ln");
  return o.scale == 1.0 ? h : h * o.scale;
}

at::Tensor capped(const at::Tensor& logits, const OutputSpec& output) {
  return output.softcap > 0 ? at::tanh(logits / output.softcap) * output.softcap : logits;
}

}  // namespace rankscope
