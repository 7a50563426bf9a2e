// What named_library_test.cpp gives more rights than its caller has: prints where the engine would be looked
// for. Linked with nothing of ours, because the loader finds no library beside a program that is setuid.
#include <cstdio>

#include "base/error.h"
#include "cli/named_library.h"

int main() {
  try {
    const char* set = rankscope::named_library("RANKSCOPE_LIBRARY");
    std::puts(set == nullptr ? "beside the program" : set);
  } catch (const rankscope::Error& error) {
    std::puts(error.message().c_str());
  }
}
