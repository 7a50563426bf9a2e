#include "cli/engine.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/version.h"
#include "cli/named_library.h"
#include "cli/own_folder.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

fs::path find_library() {
  if (const char* set = named_library("RANKSCOPE_LIBRARY")) return set;
  const fs::path here = own_folder();
  for (const char* place : {"librankscope.so", "../lib/librankscope.so",
                            "../lib/x86_64-linux-gnu/librankscope.so", "../lib64/librankscope.so"})
    if (fs::exists(here / place)) return here / place;
  throw Error("librankscope.so is not there; this command needs it")
      .in(here.string())
      .hint("make build, or set RANKSCOPE_LIBRARY");
}

// OpenBLAS takes its buffers as it is loaded, and tries for ever where it cannot have them; LibTorch aborts.
// With one thread both need not quite 1 GB.
void require_address_space() {
  constexpr rlim_t kNeeded = rlim_t{2} << 30;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kNeeded)
    return;
  throw Error(fmt::format("the engine needs 2048 MB of address space to start, but a limit allows {} MB",
                          limit.rlim_cur >> 20))
      .hint("ulimit -v unlimited");
}

const Engine& load() {
  require_address_space();
  // Read by the libraries when they load: BLAS workers that spin after each call would starve OpenMP's.
  setenv("OPENBLAS_THREAD_TIMEOUT", "4", 0);
  setenv("GOMP_SPINCOUNT", "10000", 0);  // small training steps meet at barriers thousands of times a second
  const fs::path path = find_library();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw Error(fmt::format("cannot load the engine: {}", dlerror())).in(path.string());
  using Entry = const Engine* (*)(const char*);
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "rankscope_engine"));
  const Engine* table = entry == nullptr ? nullptr : entry(std::string(version()).c_str());
  if (table == nullptr)
    throw Error(fmt::format("the engine is of another version than this program ({})", version()))
        .in(path.string())
        .hint("make build");
  return *table;
}

}  // namespace

const Engine& engine() {
  static const Engine& loaded = load();
  return loaded;
}

}  // namespace rankscope
