// The machine a case runs on: how its time is taken and what it could do at best.
#pragma once

#include <functional>
#include <string>

namespace rankscope {

struct Machine {
  std::string device = "cpu";
  int threads = 1;
  bool tf32 = true;
  bool quick = false;
  bool processor_time = false;            // of all threads together; the CPU only
  double matrix_rate = 0, copy_rate = 0;  // the best seen in this run

  bool cuda() const { return device != "cpu"; }
};

/// Sets threads (0: all cores) and precision, for every side alike. A device that is not there is an error.
void use_machine(Machine& machine);

/// Measures both rates and keeps the better of these and those before: a machine does not get slower by being
/// disturbed.
void measure_rates(Machine& machine);

/// Seconds a call of `work` takes: the median of several rounds, each long enough for the clock.
double seconds_of(const Machine& machine, const std::function<void()>& work);

/// Neither its arithmetic at the matrix rate nor its traffic at the copy rate can be undercut.
struct Limit {
  double seconds;
  bool by_bytes;
};
Limit limit_of(const Machine& machine, double flops, double bytes);

}  // namespace rankscope
