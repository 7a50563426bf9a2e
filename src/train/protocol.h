// How a trial is trained: optimizer, schedule, data, and how it is judged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/adamw.h"
#include "spec/model.h"
#include "tasks/task.h"
#include "tasks/token_task.h"

namespace rankscope {

enum class Schedule {
  cosine,    // half a cosine down to lr_end after the warm-up
  constant,  // after the warm-up
  linear,    // down to zero
  epochs     // times 0.91 at epochs 15, 30, 40, 50 and 60
};

struct Protocol {
  int64_t steps = 1000;
  int64_t batch = 256;
  double lr = 0.01;
  double lr_end = 0;     // the schedule's last value, as a fraction of lr
  double warmup = 0.05;  // fraction of the steps
  Schedule schedule = Schedule::cosine;
  /// The reference's protocol: the same 100 batches again and again, a learning rate that changes every 100
  /// steps and is 0 in the first 100, one initialisation for all seeds.
  bool replay = false;
  AdamW adamw{0.9f, 0.95f, 1e-8f, 0.0f};
  double l2 = 0;                  // added to the gradient
  double clip = 0;                // of the gradient's norm; 0: none
  double dropout = 0;             // share of numbers taken out in training
  bool shuffle = false;           // sets: a new order every epoch
  int64_t window = 100;           // steps over which a training loss is averaged; sets: an epoch
  int64_t test_sequences = 4096;  // 0: it is not tested while it trains
  int64_t eval_every = 0;         // 0: twenty times in all
};

/// Everything that makes a trial: it is a function of this value.
struct TrialSpec {
  ModelSpec network;
  TaskSpec task;                             // drawn fresh every step, unless there is a set
  std::shared_ptr<const TokenSet> set = {};  // trained on again and again
  Protocol protocol;
  uint64_t init_seed = 0, data_seed = 0;
  std::string start = "random";  // or a construction (train/constructions.h)
  double start_beta = 100;       // its inverse temperature
  double start_scale = 1;        // of a random start: value and output maps are this many times as large
};

constexpr int64_t kReplay = 100;  // steps of an "epoch" of the replay

/// The learning rate of update `step`, counted from 0.
double learning_rate(const Protocol& protocol, int64_t step);
std::vector<float> learning_rates(const Protocol& protocol);

/// Which draw of the data step `step` trains on.
inline int64_t data_step(const Protocol& protocol, int64_t step) {
  return protocol.replay ? step % kReplay : step;
}

/// Steps after which the trial is tested.
int64_t eval_interval(const Protocol& protocol);

/// The test set is one and the same for every trial of a task: its seed is no trial's.
constexpr uint64_t kTestSeed = 0x7e57'5e7d'a7a5'eed0;

/// Trials that may train in one stack have equal keys. The key is the whole trial, without what parts say may
/// differ (heads and score scales at equal shapes), its seeds, its start and its learning rate.
std::string stack_key(const TrialSpec& trial);

/// Tokens a sequence has, and answers.
int64_t tokens_of(const TrialSpec& trial);

double training_flops(const TrialSpec& trial);

}  // namespace rankscope
