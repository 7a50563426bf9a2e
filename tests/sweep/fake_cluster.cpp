// A study of the fake runner over the processes that mpirun starts: for tests that kill one of them.
//
//   mpirun -n 4 fake_cluster FOLDER LEASE_SECONDS
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/version.h"
#include "sweep/cluster.h"
#include "sweep/fake_runner.h"

namespace {
std::atomic<bool> stop{false};
}

int main(int argc, char** argv) {
  using namespace rankscope;
  std::signal(SIGTERM, [](int) { stop = true; });
  Transport& others = *rankscope_mpi(std::string(version()).c_str());
  try {
    if (argc < 3) throw Error("fake_cluster FOLDER LEASE_SECONDS");
    SweepOptions options;
    options.stop = &stop;
    options.lease_seconds = std::atof(argv[2]);
    if (others.rank() > 0) {
      work({&test::fake_runner()}, options, others);
      return 0;
    }
    Store store(argv[1]);
    const SweepReport report = coordinate(store, test::fake_runner(), options, others, {});
    std::printf("done %lld failed %lld left %lld\n", static_cast<long long>(report.done),
                static_cast<long long>(report.failed), static_cast<long long>(report.left));
    return 0;
  } catch (const Error& e) {
    if (others.rank() == 0) dismiss(others);
    std::fputs(e.render().c_str(), stderr);
    return 1;
  }
}
