// Small trials for the tests of train/.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <vector>

#include "train/constructions.h"
#include "train/data.h"
#include "train/fused_forward.h"
#include "train/layout.h"
#include "train/networks.h"
#include "train/plain_forward.h"
#include "train/stack.h"
#include "train/trainer.h"

namespace rankscope {

/// What the tests change about an encoder.
struct EncoderWords {
  int64_t d = 8, layers = 2, modules = 3, heads = 2;  // heads of a module
  int64_t rank = 4, v_rank = 4;
  double scale = 0.5;
  int64_t mlp = 20;
  NormKind norm = NormKind::unit;
  NormPlace place = NormPlace::post;
  bool bias = true, hard = false;
  int64_t answer = 0;          // 0: as wide as a point
  int64_t positions = 0;       // so many places
  int64_t position_width = 0;  // > 0: concatenated
  int64_t embed = 0;           // > 0: a map into this width and one out of it
};

inline ModelSpec encoder(const EncoderWords& w) {
  AttentionSpec a;
  a.variant = w.hard ? "hard" : "softmax";
  a.modules = w.modules;
  a.heads = a.kv_heads = w.modules * w.heads;
  a.d_qk = w.rank;
  a.d_v = w.v_rank;
  a.scale = w.scale;
  a.bias = a.output_bias = w.bias;
  const MlpSpec mlp{.width = w.mlp, .activation = Activation::relu, .bias = w.bias};
  ModelSpec s =
      points_encoder(w.d, classic_block(w.place, fused_norm(w.norm), a, w.mlp > 0 ? "mlp" : "", mlp),
                     w.layers, w.answer > 0 ? w.answer : w.d);
  s.embedding.positions = w.positions;
  s.embedding.position_width = w.position_width;
  s.width = w.d + w.position_width;
  if (w.embed > 0) {
    s.width = s.embedding.width = w.embed;
    s.embedding.point_map = true;
    s.embedding.bias = w.bias;
    s.output = {.kind = HeadKind::linear, .vocabulary = w.answer, .width = w.embed, .bias = w.bias};
  }
  return s;
}

inline TrialSpec trial_of(const EncoderWords& words, int64_t tokens = 6) {
  TrialSpec t;
  t.task = {.name = "farthest", .d = words.d, .n = tokens};
  t.network = encoder(words);
  t.protocol.steps = 40;
  t.protocol.batch = 200;  // several tiles, the last one cut
  t.protocol.test_sequences = 300;
  t.init_seed = 11;
  t.data_seed = 12;
  return t;
}

inline EncoderWords small_words(int64_t heads = 2) {
  return {.heads = heads, .rank = 8 / heads, .v_rank = 8 / heads};
}
inline TrialSpec small_encoder(int64_t heads = 2) { return trial_of(small_words(heads)); }

/// The same trial with other heads of the same width.
inline TrialSpec with_heads(TrialSpec t, int64_t heads) {
  for (BlockSpec& block : t.network.blocks) {
    AttentionSpec& a = block.attention();
    const int64_t width = a.heads * a.d_qk / a.modules;
    a.heads = a.kv_heads = a.modules * heads;
    a.d_qk = a.d_v = width / heads;
  }
  return t;
}

inline TrialSpec small_layer(int64_t d, int64_t n, int64_t rank, int64_t heads) {
  TrialSpec t;
  t.task = {.name = "nearest", .data = "ortho", .d = d, .n = n, .queries = 1};
  t.network = points_layer(d, heads, rank, 1.0, d);
  t.protocol.steps = 40;
  t.protocol.test_sequences = 300;
  t.init_seed = 1;
  t.data_seed = 2;
  return t;
}

inline TrainState fresh_state(const TrialSpec& t) { return starting_state(t); }

inline at::Tensor tensor_of(const std::vector<float>& values) {
  return at::tensor(at::ArrayRef<float>(values.data(), values.size()), at::kFloat);
}

inline TaskBatch sampled(const TrialSpec& t, int64_t count, at::ScalarType type = at::kFloat) {
  TaskBatch b = task_named(t.task.name).sample(t.task, *cpu_draw(t.data_seed, 0, 0, count));
  for (at::Tensor* x : {&b.tokens, &b.queries, &b.target})
    if (x->defined()) *x = x->to(type);
  return b;
}

/// Error of the starting point on the test set.
inline Score start_error(const TrialSpec& t, int threads = 2) {
  return make_stack({t}, {fresh_state(t)}, {.device = "cpu", .threads = threads})->evaluate().front();
}

}  // namespace rankscope
