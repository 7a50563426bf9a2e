// Who runs a trial, and whether it still lives.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <fstream>
#include <iterator>

#include "sweep/store.h"

namespace rankscope {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// Of /proc/PID/stat; nothing where there is no such process.
struct ProcessStat {
  char state = 0;       // the 3rd field: Z has ended and was not waited for
  std::string started;  // the 22nd: ticks since the machine started
};

ProcessStat process_stat(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  ProcessStat out;
  size_t at = all.rfind(')');  // the 2nd is in brackets and may hold blanks
  if (at != std::string::npos && at + 2 < all.size()) out.state = all[at + 2];
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = all.find(' ', at + 1);
  if (at != std::string::npos) out.started = all.substr(at + 1, all.find(' ', at + 1) - at - 1);
  return out;
}

}  // namespace

std::string owner_name() {
  static std::atomic<int> number{0};
  const int64_t pid = ::getpid();
  return fmt::format("{}:{}:{}:{}", host_name(), pid, process_stat(pid).started, ++number);
}

bool may_be_alive(const std::string& owner) {
  const std::string here = host_name() + ":";
  if (!owner.starts_with(here)) return true;  // another machine: only its lease can tell
  const size_t colon = owner.find(':', here.size());
  int64_t pid = 0;
  const auto [rest, fault] = std::from_chars(owner.data() + here.size(), owner.data() + owner.size(), pid);
  if (colon == std::string::npos || fault != std::errc{} || rest != owner.data() + colon) return true;
  if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return false;
  const auto [state, started] = process_stat(pid);
  if (state == 'Z' || state == 'X') return false;
  return started.empty() || owner.compare(colon + 1, owner.find(':', colon + 1) - colon - 1, started) == 0;
}

}  // namespace rankscope
