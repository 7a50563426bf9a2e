#include "base/cut_short.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"

namespace rankscope {
namespace {

// Read by a signal handler, which may take no lock and no memory.
struct Mapped {
  std::atomic<bool> taken = false;
  std::atomic<const std::byte*> data = nullptr;  // set last
  size_t size = 0;
  std::array<char, 1024> path{};
};
std::array<Mapped, 512> all_mapped;

void say(std::string_view text) {
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, text.data(), text.size());
}

void name_it(int signal, siginfo_t* about, void*) {
  const auto* const at = static_cast<const std::byte*>(about->si_addr);
  for (const Mapped& m : all_mapped) {
    const std::byte* const data = m.data.load(std::memory_order_acquire);
    if (data == nullptr || at < data || at >= data + m.size) continue;
    say("error: the file got shorter while it was read\n  in   ");
    say({m.path.data(), std::strlen(m.path.data())});
    say("\n  try  again when nothing writes to it; a download may still be going on\n");
    ::_exit(1);
  }
  std::signal(signal, SIG_DFL);  // something else: it comes again, and is what it would have been
}

}  // namespace

void name_files_that_are_cut_short() {
  struct sigaction action {};
  action.sa_sigaction = name_it;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

void keep_mapped(const std::byte* data, size_t size, const std::filesystem::path& path) {
  for (Mapped& m : all_mapped) {
    if (m.taken.exchange(true)) continue;
    const std::string shown = printable(path.string(), m.path.size() / 4);
    m.path = {};
    std::memcpy(m.path.data(), shown.data(), std::min(shown.size(), m.path.size() - 1));
    m.size = size;
    m.data.store(data, std::memory_order_release);
    return;
  }
}

void forget_mapped(const std::byte* data) {
  for (Mapped& m : all_mapped)
    if (m.data.load(std::memory_order_acquire) == data) {
      m.data.store(nullptr, std::memory_order_release);
      m.taken.store(false);
      return;
    }
}

}  // namespace rankscope
