// Waiting for processes and for what they do, with a limit: a test that waits for ever says nothing.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <string>
#include <thread>

namespace rankscope::test {

constexpr double kPatience = 60;  // seconds; what is waited for takes one or two on an idle machine

inline void pause_ms(uint64_t milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// True as soon as `done` is; after kPatience the test fails, naming what it waited for.
template <class Done>
bool wait_until(const std::string& what, const Done& done) {
  const auto start = std::chrono::steady_clock::now();
  while (!done()) {
    if (std::chrono::steady_clock::now() - start > std::chrono::duration<double>(kPatience)) {
      ADD_FAILURE() << "waited " << kPatience << " s for " << what;
      return false;
    }
    pause_ms(5);
  }
  return true;
}

/// The status of a child that ends by itself; one that does not is killed, and the test fails.
inline int wait_for(pid_t child, const std::string& what) {
  int status = 0;
  if (wait_until(what + " to end", [&] { return ::waitpid(child, &status, WNOHANG) != 0; })) return status;
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace rankscope::test
