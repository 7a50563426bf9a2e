#include "train/stack.h"

#include "base/error.h"
#include "tensors/torch_compat.h"
#include "train/cpu_stack.h"
#include "train/cuda_stack.h"
#include "train/plain_stack.h"

namespace rankscope {

bool rounds_to_tf32(const StackOptions& options) {
  return options.tf32 && device_of(options.device).is_cuda();
}

std::unique_ptr<Stack> make_stack(const std::vector<TrialSpec>& trials, const std::vector<TrainState>& states,
                                  const StackOptions& options) {
  for (const TrialSpec& t : trials)
    if (stack_key(t) != stack_key(trials.front()))
      throw Error("the trials of a stack differ in more than seeds, learning rates and heads");
  if (device_of(options.device).is_cuda()) {
    const Protocol& p = trials.front().protocol;
    const bool captured = !trials.front().set && p.l2 == 0 && p.clip == 0 && p.dropout == 0;
    return captured ? make_cuda_stack(trials, states, options) : make_plain_stack(trials, states, options);
  }
  return make_cpu_stack(trials, states, options.threads);
}

int64_t stack_limit(const TrialSpec& trial, const std::string& device) {
  if (device_of(device).is_cuda()) return cuda_stack_limit(trial, device);
  return 8;  // one trial's tiles already fill the cores; a stack only fills the gaps between its steps
}

}  // namespace rankscope
