// Any text as a table: refused with an Error that names the line, or rows of one width whose cells come back
// the same when they are written and read again, and whose numbers are numbers or refused.
#include <cmath>

#include "base/csv.h"
#include "line_mutator.h"

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(std::string_view text) {
  rankscope::CsvReader reader(text, "table.csv");
  Rows rows;
  for (std::vector<std::string> cells; reader.next(cells);) {
    if (cells.empty() || (!rows.empty() && cells.size() != rows.front().size())) std::abort();
    rows.push_back(cells);
  }
  return rows;
}

// A row of one empty cell is an empty line: it cannot be told from none.
bool is_blank(const std::vector<std::string>& row) { return row.size() == 1 && row.front().empty(); }

std::string written(const Rows& rows) {
  return rows.empty() ? "" : rankscope::csv_text({rows.front(), Rows(rows.begin() + 1, rows.end())});
}

void read_numbers(const std::string& cell, const rankscope::CsvReader& reader) {
  try {
    const int64_t index = rankscope::csv_index(cell, reader);
    if (index < -1 || index > INT32_MAX || (index == -1) != cell.empty()) std::abort();
  } catch (const rankscope::Error& error) {
    if (error.render().empty()) std::abort();
  }
  try {
    if (std::isnan(rankscope::csv_number("", reader)) == false) std::abort();
    rankscope::csv_number(cell, reader);
  } catch (const rankscope::Error& error) {
    if (error.render().empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::reading([&] {
    try {
      Rows rows = rows_of(text);
      std::erase_if(rows, is_blank);
      // A mark in front, so that a cell that begins with one is not taken for it.
      if (rows_of("\xEF\xBB\xBF" + written(rows)) != rows) std::abort();
      const rankscope::CsvReader reader(text, "table.csv");
      for (const auto& row : rows)
        for (const std::string& cell : row) read_numbers(cell, reader);
    } catch (const Error& error) {
      if (error.render().find("table.csv, line") == std::string::npos) std::abort();
      throw;
    }
  });
  return 0;
}
