// Small trials for the tests of train/.
#pragma once

#include <filesystem>
#include <vector>

#include "train/constructions.h"
#include "train/stack.h"
#include "train/trainer.h"

namespace rankscope {

inline TrialSpec small_encoder(int64_t heads = 2) {
  TrialSpec t;
  t.task = {.name = "farthest", .d = 8, .n = 6};
  t.network = {.token_width = 8,
               .answer_width = 8,
               .tokens = 6,
               .layers = 2,
               .modules = 3,
               .heads = heads,
               .rank = 8 / heads,
               .v_rank = 8 / heads,
               .score_scale = 0.5,
               .mlp = 20};
  t.protocol.steps = 40;
  t.protocol.batch = 200;  // several tiles, the last one cut
  t.protocol.test_sequences = 300;
  t.init_seed = 11;
  t.data_seed = 12;
  return t;
}

inline TrialSpec small_layer(int64_t d, int64_t n, int64_t rank, int64_t heads) {
  TrialSpec t;
  t.task = {.name = "nearest", .data = "ortho", .d = d, .n = n, .queries = 1};
  t.network = {.encoder = false,
               .token_width = d,
               .answer_width = d,
               .tokens = n,
               .heads = heads,
               .rank = rank,
               .v_rank = d,
               .norm = NormKind::none};
  t.network.score_scale = 1.0;
  t.protocol.steps = 40;
  t.protocol.test_sequences = 300;
  t.init_seed = 1;
  t.data_seed = 2;
  return t;
}

inline TrainState fresh_state(const TrialSpec& t) { return starting_state(t); }

/// Error of the starting point on the test set.
inline Score start_error(const TrialSpec& t, int threads = 2) {
  return make_stack({t}, {fresh_state(t)}, {.device = "cpu", .threads = threads})->evaluate().front();
}

}  // namespace rankscope
