// Tables of cells, and CSV (RFC 4180): the one reader for what comes from outside, the one way to write a
// cell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

/// A table with its cells as they stand in the file.
struct CellTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;

  std::optional<size_t> find(std::string_view column) const;
};

/// Row by row, for tables too large to hold as cells.
class CsvReader {
 public:
  /// A table as csv_cell writes it: the apostrophe before a formula is ours, and goes. The text must outlive
  /// the reader; `place` (a file name) is named in errors.
  CsvReader(std::string_view text, std::string place);
  /// A table of someone else, each cell as it stands. Spreadsheets of some countries write `;` between cells.
  static CsvReader of_texts(std::string_view text, std::string place, char separator);

  /// The next row that is not empty; false at the end. A row whose number of cells differs from the first
  /// one's is an error that names its line.
  bool next(std::vector<std::string>& cells);

  /// "metrics.csv, line 12": where the row just read begins.
  std::string where() const;

 private:
  std::string cell();

  std::string_view text_;
  size_t at_ = 0, columns_ = 0;
  int64_t line_ = 1, row_line_ = 1;
  std::string place_;
  char separator_ = ',';
  bool guarded_ = true;
};

/// A whole table; its first row names the columns, and a text without one is an error.
CellTable parse_csv(std::string_view text, const std::string& place);
CellTable read_csv(const std::filesystem::path& file, uint64_t limit = uint64_t{1} << 30);

std::string csv_text(const CellTable& table);
/// Quoted where it holds a comma, a quote or a line break; an apostrophe goes before what a spreadsheet would
/// take for a formula (= @, or a sign before more than a word), and CsvReader takes it off again.
std::string csv_cell(std::string_view text);

/// Nothing for a cell that is empty or not a number from its first to its last letter.
std::optional<double> as_number(std::string_view cell);
/// A number, NaN for an empty cell; anything else is an error.
double csv_number(const std::string& cell, const CsvReader& reader);
/// A whole number of at least 0, or -1 for an empty cell; anything else is an error.
int64_t csv_index(const std::string& cell, const CsvReader& reader);

}  // namespace rankscope
