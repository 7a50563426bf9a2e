#include "train/in_parallel.h"

#include <exception>

#include "tensors/torch_compat.h"

namespace rankscope {

// A lone task has its parallel region too. Outside of one a BLAS that cannot be told otherwise shares out
// each of the task's many small products and waits for all threads every time: with another program on one
// core a step took 7 times as long.
void each_in_parallel(int threads, int64_t tasks, const std::function<void(int64_t task)>& work) {
  const OneBlasThread alone;
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
  for (int64_t task = 0; task < tasks; ++task) {
    try {
      work(task);
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rankscope
