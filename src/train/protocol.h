// How a trial is trained: optimizer, schedule, data, and how it is judged.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/adamw.h"
#include "tasks/task.h"
#include "train/network.h"

namespace rankscope {

struct Protocol {
  int64_t steps = 1000;
  int64_t batch = 256;
  double lr = 0.01;
  double lr_end = 0;     // the schedule's last value, as a fraction of lr
  double warmup = 0.05;  // fraction of the steps
  bool cosine = true;    // false: constant after the warm-up
  /// The reference's protocol: the same 100 batches again and again, a learning rate that changes every 100
  /// steps and is 0 in the first 100, one initialisation for all seeds.
  bool replay = false;
  AdamW adamw{0.9f, 0.95f, 1e-8f, 0.0f};
  int64_t test_sequences = 4096;
  int64_t eval_every = 0;  // 0: twenty times in all
};

/// Everything that makes a trial: it is a function of this value.
struct TrialSpec {
  NetworkSpec network;
  TaskSpec task;
  Protocol protocol;
  uint64_t init_seed = 0, data_seed = 0;
  std::string start = "random";  // or a construction (train/constructions.h)
  double start_beta = 100;       // its inverse temperature
};

constexpr int64_t kWindow =
    100;  // steps over which a training loss is averaged, and an "epoch" of the replay

/// The learning rate of update `step`, counted from 0.
double learning_rate(const Protocol& protocol, int64_t step);
std::vector<float> learning_rates(const Protocol& protocol);

/// Which draw of the data step `step` trains on.
inline int64_t data_step(const Protocol& protocol, int64_t step) {
  return protocol.replay ? step % kWindow : step;
}

/// Steps after which the trial is tested.
int64_t eval_interval(const Protocol& protocol);

/// The test set is one and the same for every trial of a task: its seed is no trial's.
constexpr uint64_t kTestSeed = 0x7e57'5e7d'a7a5'eed0;

/// Trials that may train in one stack have equal keys: the same shapes, task and protocol; rank, seed and lr
/// are free.
std::string stack_key(const TrialSpec& trial);

double training_flops(const TrialSpec& trial);

}  // namespace rankscope
