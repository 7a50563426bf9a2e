// Independent jobs over the OpenMP threads. An exception may not leave a parallel region, so the first one is
// carried out by hand. With fewer jobs than half the threads the loop stays serial: then BLAS has them all.
#pragma once

#include <omp.h>

#include <cstdint>
#include <exception>

namespace rankscope {

template <class Job>
void parallel_over(int64_t count, const Job& job) {
  std::exception_ptr failure;
  const bool wide = count > 1 && 2 * count >= omp_get_max_threads();
#pragma omp parallel for schedule(dynamic) if (wide)
  for (int64_t i = 0; i < count; ++i) {
    try {
      job(i);
    } catch (...) {
#pragma omp critical(rankscope_parallel_failure)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rankscope
