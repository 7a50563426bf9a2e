#include "base/error.h"
#include "train/cuda_stack.h"

namespace rankscope {
namespace {

[[noreturn]] void refuse() {
  throw Error("this build cannot train on CUDA").hint("build with TORCH=DIR of a CUDA LibTorch");
}

}  // namespace

std::unique_ptr<Stack> make_cuda_stack(const std::vector<TrialSpec>&, const std::vector<TrainState>&,
                                       const StackOptions&) {
  refuse();
}

int64_t cuda_stack_limit(const TrialSpec&, const std::string&) { refuse(); }

}  // namespace rankscope
