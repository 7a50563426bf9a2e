// CSV from outside (RFC 4180), line by line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

class CsvReader {
 public:
  /// The text must outlive the reader; `place` (a file name) is named in errors.
  CsvReader(std::string_view text, std::string place);

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
};

/// A whole number of at least 0, or -1 for an empty cell.
int64_t csv_index(const std::string& cell, const CsvReader& reader);
/// A number; an empty cell is NaN.
double csv_number(const std::string& cell, const CsvReader& reader);

}  // namespace rankscope
