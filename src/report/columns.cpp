#include "report/columns.h"

#include <algorithm>
#include <ostream>
#include <vector>

#include "report/text.h"

namespace rankscope {
namespace {

constexpr int kGap = 2;
constexpr int kLabel = 12;

int width_of(const Column& c) {
  int width = display_width(c.title);
  for (const std::string& cell : c.cells) width = std::max(width, display_width(cell));
  return width;
}

// Columns [first, last) beside the leading one; `widths` of all.
void print_block(const std::vector<Column>& columns, const std::vector<int>& widths, size_t first,
                 size_t last, std::ostream& out) {
  const auto row = [&](const auto& text_of) {
    std::string line;
    const auto put = [&](size_t i) {
      const Column& c = columns[i];
      if (!line.empty()) line += std::string(kGap, ' ');
      line += c.left ? pad_right(text_of(c), widths[i]) : pad_left(text_of(c), widths[i]);
    };
    put(0);
    for (size_t i = first; i < last; ++i) put(i);
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  };
  row([](const Column& c) { return c.title; });
  for (size_t r = 0; r < columns.front().cells.size(); ++r)
    row([r](const Column& c) { return r < c.cells.size() ? c.cells[r] : std::string(); });
}

}  // namespace

void print_columns(const std::vector<Column>& columns, const TerminalStyle& style, std::ostream& out) {
  if (columns.empty()) return;
  std::vector<int> widths;  // once: a row each would make long tables quadratic
  for (const Column& c : columns) widths.push_back(width_of(c));
  size_t first = 1;
  do {
    int width = widths.front();
    size_t last = first;
    while (last < columns.size() && (last == first || width + kGap + widths[last] <= style.width))
      width += kGap + widths[last++];
    if (first > 1) out << '\n';
    print_block(columns, widths, first, last, out);
    first = last;
  } while (first < columns.size());
}

void print_wrapped(const std::string& label, const std::string& text, const TerminalStyle& style,
                   std::ostream& out) {
  const int indent = label.empty() ? 0 : std::min(kLabel, style.width / 2);
  bool first = true;
  for (const std::string& piece : wrap(terminal_text(text), style.width - indent)) {
    out << pad_right(first ? label : "", indent) << piece << '\n';
    first = false;
  }
}

void print_sentences(const Results& results, const TerminalStyle& style, std::ostream& out) {
  for (const Sentence& s : results.verdict)
    print_wrapped((s.known ? "  " : "? ") + terminal_text(s.topic, 40), s.text, style, out);
  for (const std::string& note : results.notes) print_wrapped("  note", note, style, out);
}

}  // namespace rankscope
