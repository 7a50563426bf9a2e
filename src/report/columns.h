// Numbers in columns for a terminal: a heading, rows, as wide as they need to be.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "report/terminal.h"

namespace rankscope {

struct Column {
  std::string title;
  std::vector<std::string> cells;
  bool left = false;  // text stands left, numbers right
};

/// Columns that do not fit the terminal go below, under the first one again.
void print_columns(const std::vector<Column>& columns, const TerminalStyle& style, std::ostream& out);

/// Text broken into lines of the terminal's width, later lines indented.
void print_wrapped(const std::string& label, const std::string& text, const TerminalStyle& style,
                   std::ostream& out);

/// The verdict's sentences and the notes, as `rankscope scan` prints them.
void print_sentences(const Results& results, const TerminalStyle& style, std::ostream& out);

}  // namespace rankscope
