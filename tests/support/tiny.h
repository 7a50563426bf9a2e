// Small models for tests: specs by hand, weights from a seed.
#pragma once

#include <vector>

#include "base/philox.h"
#include "model/batch.h"
#include "spec/model.h"

namespace rankscope::test {

/// A BERT-like or GPT-like model of `depth` blocks: 4 heads of width 6 in width 24, MLP 40, 50 words.
inline ModelSpec tiny_spec(NormPlace place = NormPlace::post, int64_t depth = 3) {
  ModelSpec s;
  s.architecture = "tiny";
  s.width = 24;
  s.stored_blocks = depth;
  s.position = PositionKind::learned;
  s.init.std = 0.3;  // attention far from uniform
  s.embedding.vocabulary = 50;
  s.embedding.width = 24;
  s.embedding.positions = 64;
  AttentionSpec a;
  a.heads = a.kv_heads = 4;
  a.d_qk = a.d_v = 6;
  a.scale = 0.4;
  a.causal = place == NormPlace::pre;
  BlockSpec b = classic_block(place, {NormKind::layer, 1e-6}, a, "mlp", {.width = 40});
  for (int64_t l = 0; l < depth; ++l) {
    b.weights = l;
    s.blocks.push_back(b);
  }
  if (place == NormPlace::pre) s.final_norm = {NormKind::layer, 1e-6};
  s.output.kind = HeadKind::linear;
  s.output.vocabulary = 50;
  s.output.width = 24;
  return s;
}

/// Samples of the given lengths with random ids.
inline std::vector<Sample> random_samples(const std::vector<int64_t>& lengths, int64_t vocabulary,
                                          uint64_t seed = 7) {
  std::vector<Sample> out;
  const Philox random{seed, 99, 0};
  uint64_t index = 0;
  for (const int64_t n : lengths) {
    Sample s;
    for (int64_t i = 0; i < n; ++i)
      s.ids.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(vocabulary), index++)));
    out.push_back(std::move(s));
  }
  return out;
}

}  // namespace rankscope::test
