#include "cli/cluster.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/version.h"
#include "cli/named_library.h"
#include "cli/own_folder.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

int from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? 0 : std::atoi(value);
}

// How many processes the launcher says it started: Open MPI's mpirun, MPICH's, or a step of srun
// (SLURM_NTASKS alone is also set in a batch script, where nothing was launched).
int launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const int size = from_environment(name); size > 0) return size;
  return std::getenv("PMIX_RANK") != nullptr || std::getenv("SLURM_STEP_ID") != nullptr
             ? from_environment("SLURM_STEP_NUM_TASKS")
             : 0;
}

fs::path find_library() {
  if (const char* set = named_library("RANKSCOPE_MPI_LIBRARY")) return set;
  const fs::path here = own_folder();
  for (const char* place : {"librankscope_mpi.so", "../lib/librankscope_mpi.so",
                            "../lib/x86_64-linux-gnu/librankscope_mpi.so", "../lib64/librankscope_mpi.so"})
    if (fs::exists(here / place)) return here / place;
  throw Error("several processes were started together, but librankscope_mpi.so is not there")
      .in(here.string())
      .hint("install MPI (apt install libopenmpi-dev openmpi-bin), then make build");
}

Transport* load(int processes) {
  const fs::path path = find_library();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw Error(fmt::format("cannot load MPI: {}", dlerror())).in(path.string());
  using Entry = Transport* (*)(const char*);
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "rankscope_mpi"));
  Transport* transport = entry == nullptr ? nullptr : entry(std::string(version()).c_str());
  if (transport == nullptr)
    throw Error("librankscope_mpi.so is of another version than this program")
        .in(path.string())
        .hint("make build");
  if (transport->size() == 1)
    throw Error(
        fmt::format("{} processes were started, but MPI sees one: the launcher speaks another dialect",
                    processes))
        .hint("srun --mpi=pmix, or mpirun of the same MPI");
  return transport;
}

}  // namespace

Transport* cluster() {
  static Transport* const transport = launched() > 1 ? load(launched()) : nullptr;
  return transport;
}

bool ends_with_its_workers() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr &&
         from_environment("OMPI_MCA_orte_enable_recovery") == 0;
}

}  // namespace rankscope
