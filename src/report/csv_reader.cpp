#include "report/csv_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/table.h"

namespace rankscope {

CsvReader::CsvReader(std::string_view text, std::string place) : text_(text), place_(std::move(place)) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // what some spreadsheets put in front
}

std::string CsvReader::where() const { return fmt::format("{}, line {}", place_, row_line_); }

std::string CsvReader::cell() {
  std::string out;
  if (at_ < text_.size() && text_[at_] == '"') {
    for (++at_;; ++at_) {
      if (at_ >= text_.size()) throw Error("a quoted cell does not end").in(where());
      if (text_[at_] == '"' && (++at_ >= text_.size() || text_[at_] != '"')) break;
      line_ += text_[at_] == '\n';
      out += text_[at_];
    }
    if (at_ < text_.size() && std::string_view(",\r\n").find(text_[at_]) == std::string_view::npos)
      throw Error("text follows a quoted cell").in(where());
    return out;
  }
  const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
  out = text_.substr(at_, end - at_);
  at_ = end;
  return out;
}

bool CsvReader::next(std::vector<std::string>& cells) {
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) line_ += text_[at_++] == '\n';
  cells.clear();
  if (at_ >= text_.size()) return false;
  row_line_ = line_;
  while (true) {
    cells.push_back(cell());
    if (at_ >= text_.size() || text_[at_] != ',') break;
    ++at_;
  }
  if (columns_ == 0) columns_ = cells.size();
  if (cells.size() != columns_)
    throw Error(fmt::format("expected {} cells, but the row has {}", columns_, cells.size())).in(where());
  return true;
}

int64_t csv_index(const std::string& cell, const CsvReader& reader) {
  if (cell.empty()) return -1;
  int64_t value = 0;
  const auto [end, fault] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (fault != std::errc{} || end != cell.data() + cell.size() || value < 0 || value > INT32_MAX)
    throw Error(fmt::format("expected a whole number, but got \"{}\"", printable(cell))).in(reader.where());
  return value;
}

double csv_number(const std::string& cell, const CsvReader& reader) {
  if (cell.empty()) return kNone;
  double value = 0;
  const auto [end, fault] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (fault != std::errc{} || end != cell.data() + cell.size())
    throw Error(fmt::format("expected a number, but got \"{}\"", printable(cell))).in(reader.where());
  return value;
}

}  // namespace rankscope
