// A program that carries out a study of the fake runner: for tests that kill it.
//
//   fake_study FOLDER [LEASE_SECONDS]     goes on with the store of FOLDER, as `study resume` does
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "sweep/fake_runner.h"
#include "sweep/schedule.h"

namespace {
std::atomic<bool> stop{false};
}

int main(int argc, char** argv) {
  using namespace rankscope;
  std::signal(SIGTERM, [](int) { stop = true; });
  try {
    if (argc < 2) throw Error("fake_study FOLDER [LEASE_SECONDS]");
    SweepOptions options;
    options.stop = &stop;
    if (argc > 2) options.lease_seconds = std::atof(argv[2]);
    Store store(argv[1]);
    const SweepReport report = run_study(store, test::fake_runner(), options, {});
    std::printf("done %lld failed %lld left %lld elsewhere %lld\n", static_cast<long long>(report.done),
                static_cast<long long>(report.failed), static_cast<long long>(report.left),
                static_cast<long long>(report.elsewhere));
    return 0;
  } catch (const Error& e) {
    std::fputs(e.render().c_str(), stderr);
    return 1;
  }
}
