// What `rankscope scan` prints: the layers, the variants side by side, the verdict.
#pragma once

#include <iosfwd>

#include "report/results.h"

namespace rankscope {

struct TerminalStyle {
  int width = 80;  // no line is wider
  bool colour = false;
  bool unicode = true;
};

/// What the terminal behind a file descriptor can show. Colour only on a terminal, and not when NO_COLOR is
/// set; bars in Unicode only where the locale says UTF-8.
TerminalStyle terminal_style(int descriptor);

void print_results(const Results& results, const TerminalStyle& style, std::ostream& out);

}  // namespace rankscope
