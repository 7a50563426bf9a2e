#include "cli/own_folder.h"

#include <sys/auxv.h>

namespace rankscope {
namespace fs = std::filesystem;

fs::path own_folder() {
  std::error_code ignored;
  fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (program.empty())
    if (const unsigned long started = getauxval(AT_EXECFN); started != 0)
      program = fs::weakly_canonical(reinterpret_cast<const char*>(started), ignored);
  return program.parent_path();
}

}  // namespace rankscope
