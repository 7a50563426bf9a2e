#include "train/networks.h"

#include "kernels/cpu/skip_norm.h"

namespace rankscope {

NormSpec fused_norm(NormKind kind) {
  if (kind == NormKind::none) return {};
  return {kind, kind == NormKind::unit ? 0.0 : SkipNorm{}.epsilon};
}

ModelSpec points_encoder(int64_t points, const BlockSpec& block, int64_t layers, int64_t answer_width) {
  ModelSpec s;
  s.architecture = "rankscope";
  s.width = points;
  s.embedding.points = s.embedding.width = points;
  s.blocks.assign(static_cast<size_t>(layers), block);
  for (int64_t l = 0; l < layers; ++l) s.blocks[static_cast<size_t>(l)].weights = l;
  s.stored_blocks = layers;
  if (const BranchSpec* a = block.attention_branch()) s.final_norm = a->before;
  s.output.channels = answer_width;
  s.init.kind = InitKind::torch;
  return s;
}

ModelSpec points_layer(int64_t points, int64_t heads, int64_t rank, double score_scale, int64_t answer_width,
                       int64_t positions, int64_t position_width, bool bias) {
  AttentionSpec a;
  a.heads = a.kv_heads = heads;
  a.d_qk = rank;
  a.d_v = points + position_width;
  a.scale = score_scale;
  // With places this is the score's own bias, <b_Q, W_K place>; without, softmax would not see it.
  a.bias = bias && positions > 0;
  a.key_bias = a.output_bias = a.value_map = false;
  a.output_width = answer_width;
  BlockSpec block = classic_block(NormPlace::post, {}, a, "");
  block.branches.front().skip = false;
  block.branches.front().reads = kPoints;

  ModelSpec s;
  s.architecture = "rankscope";
  s.width = points + position_width;
  s.embedding.points = s.embedding.width = points;
  s.embedding.position_width = position_width;
  StreamSpec source;
  source.name = kPoints;
  source.embedding = s.embedding;
  source.embedding.positions = positions;
  s.sources.push_back(source);
  s.blocks = {block};
  s.stored_blocks = 1;
  s.output.channels = answer_width;
  s.init.kind = InitKind::torch;
  return s;
}

}  // namespace rankscope
