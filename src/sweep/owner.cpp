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

// The 22nd field of /proc/PID/stat: ticks since the machine started. The 2nd is in brackets and may hold
// blanks.
std::string start_time(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  size_t at = all.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = all.find(' ', at + 1);
  return at == std::string::npos ? "" : all.substr(at + 1, all.find(' ', at + 1) - at - 1);
}

}  // namespace

std::string owner_name() {
  static std::atomic<int> number{0};
  const int64_t pid = ::getpid();
  return fmt::format("{}:{}:{}:{}", host_name(), pid, start_time(pid), ++number);
}

bool may_be_alive(const std::string& owner) {
  const std::string here = host_name() + ":";
  if (!owner.starts_with(here)) return true;  // another machine: only its lease can tell
  const size_t colon = owner.find(':', here.size());
  int64_t pid = 0;
  const auto [rest, fault] = std::from_chars(owner.data() + here.size(), owner.data() + owner.size(), pid);
  if (colon == std::string::npos || fault != std::errc{} || rest != owner.data() + colon) return true;
  if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return false;
  const std::string started = start_time(pid);
  return started.empty() || owner.compare(colon + 1, owner.find(':', colon + 1) - colon - 1, started) == 0;
}

}  // namespace rankscope
