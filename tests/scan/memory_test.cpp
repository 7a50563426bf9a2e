// A model larger than the memory it may use can be scanned.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "support/random_checkpoint.h"
#include "support/temporary_folder.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

struct Finished {
  int code;
  double megabytes;  // peak resident
};

// Runs the program with at most `data` bytes of memory of its own (0: no cap).
Finished run_program(std::vector<std::string> arguments, rlim_t data) {
  const char* program = std::getenv("RANKSCOPE_PROGRAM");
  const pid_t child = fork();
  if (child == 0) {
    if (data > 0) {
      const rlimit cap{data, data};
      setrlimit(RLIMIT_DATA, &cap);
    }
    std::vector<char*> argv{const_cast<char*>(program)};
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    if (freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    execv(program, argv.data());
    _exit(127);
  }
  int status = 0;
  struct rusage usage {};
  wait4(child, &status, 0, &usage);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, static_cast<double>(usage.ru_maxrss) / 1024};
}

// What a process with torch and its threads has reserved before any work: LibTorch and BLAS reserve half a
// gigabyte of address space without touching it, and the kernel's cap counts reservations.
rlim_t reserved_when_idle() {
  use_threads(2);
  at::mm(at::ones({256, 256}), at::ones({256, 256}));
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmData:", 0) == 0) return static_cast<rlim_t>(std::stoll(line.substr(7))) * 1024;
  return 0;
}

TEST(Memory, AModelSeveralTimesTheCapIsScanned) {
  if (std::getenv("RANKSCOPE_PROGRAM") == nullptr) GTEST_SKIP() << "run with ctest, which names the program";
  const TemporaryFolder folder;
  test::write_random_checkpoint(folder.path(), test::llama_config(512, 40, 8, 8, 1408, 2000),
                                StoredType::f32);
  const double file =
      static_cast<double>(std::filesystem::file_size(folder.path() / "model.safetensors")) / 1048576;
  const double cap = 128;  // above an idle process
  ASSERT_GT(file, 3 * cap);
  const std::string model = folder.path().string();
  const Finished scanned = run_program({"scan", model, "--random-tokens", "--samples", "2", "--max-length",
                                        "32", "--threads", "2", "--lens", "residual,attention", "--quiet"},
                                       reserved_when_idle() + static_cast<rlim_t>(cap * 1048576));
  EXPECT_EQ(scanned.code, 0);
  // The cap counts memory the process owns; mapped pages of the file are held to the same by giving them
  // back.
  const Finished idle = run_program({"lenses"}, 0);
  EXPECT_EQ(idle.code, 0);
  EXPECT_LT(scanned.megabytes - idle.megabytes, cap);
}

}  // namespace
}  // namespace rankscope
