#include <unistd.h>

#include <csignal>
#include <iostream>

#include "base/cut_short.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // `rankscope ... | head` ends quietly: the stream goes bad instead
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error with a name, as a full disk is
  rankscope::name_files_that_are_cut_short();
  return rankscope::run_program({argv + 1, argv + argc}, std::cin, std::cout, std::cerr);
}
