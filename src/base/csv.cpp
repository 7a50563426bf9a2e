#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/table.h"

namespace rankscope {

std::optional<size_t> CellTable::find(std::string_view column) const {
  const auto it = std::find(columns.begin(), columns.end(), column);
  if (it == columns.end()) return std::nullopt;
  return static_cast<size_t>(it - columns.begin());
}

namespace {

constexpr size_t kMostCells = 1 << 16;  // of a row: thirty-two bytes each, where the text may have one

// What a spreadsheet would carry out. Names of ours may begin with a sign (-skip): words without brackets,
// bars and exclamation marks call nothing.
bool is_formula(std::string_view text) {
  if (text.empty()) return false;
  if (std::string_view("=@\t\r").find(text.front()) != std::string_view::npos) return true;
  const auto harmless = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_.:+-").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return (text.front() == '+' || text.front() == '-') && !std::all_of(text.begin(), text.end(), harmless);
}

// Behind any number of apostrophes, so that one more can always be told from those that were there.
bool is_guarded_formula(std::string_view text) {
  const size_t at = text.find_first_not_of('\'');
  return at != std::string_view::npos && is_formula(text.substr(at));
}

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string place) : text_(text), place_(std::move(place)) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // what some spreadsheets put in front
}

CsvReader CsvReader::of_texts(std::string_view text, std::string place, char separator) {
  CsvReader out(text, std::move(place));
  out.separator_ = separator;
  out.guarded_ = false;
  return out;
}

std::string CsvReader::where() const { return fmt::format("{}, line {}", place_, row_line_); }

std::string CsvReader::cell() {
  std::string out;
  const std::string ends{separator_, '\r', '\n'};
  if (at_ < text_.size() && text_[at_] == '"') {
    for (++at_;; ++at_) {
      if (at_ >= text_.size()) throw Error("a quoted cell does not end").in(where());
      if (text_[at_] == '"' && (++at_ >= text_.size() || text_[at_] != '"')) break;
      line_ += text_[at_] == '\n';
      out += text_[at_];
    }
    if (at_ < text_.size() && ends.find(text_[at_]) == std::string::npos)
      throw Error("text follows a quoted cell").in(where());
    return out;
  }
  const size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
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
    if (cells.size() == kMostCells)
      throw Error(fmt::format("the row has more than the {} cells allowed", kMostCells)).in(where());
    cells.push_back(cell());
    if (guarded_ && cells.back().starts_with('\'') && is_guarded_formula(cells.back()))
      cells.back().erase(0, 1);
    if (at_ >= text_.size() || text_[at_] != separator_) break;
    ++at_;
  }
  if (columns_ == 0) columns_ = cells.size();
  if (cells.size() != columns_)
    throw Error(fmt::format("expected {} cells, but the row has {}", columns_, cells.size())).in(where());
  return true;
}

CellTable parse_csv(std::string_view text, const std::string& place) {
  CsvReader reader(text, place);
  CellTable table;
  if (!reader.next(table.columns)) throw Error("the table is empty").in(place);
  for (std::vector<std::string> cells; reader.next(cells);) table.rows.push_back(std::move(cells));
  return table;
}

CellTable read_csv(const std::filesystem::path& file, uint64_t limit) {
  return parse_csv(read_file(file, limit), file.string());
}

std::string csv_text(const CellTable& table) {
  std::string out;
  const auto add = [&](const std::vector<std::string>& cells) {
    for (size_t c = 0; c < cells.size(); ++c) out += (c == 0 ? "" : ",") + csv_cell(cells[c]);
    out += '\n';
  };
  add(table.columns);
  for (const auto& row : table.rows) add(row);
  return out;
}

std::string csv_cell(std::string_view cell) {
  const std::string text = (is_guarded_formula(cell) ? "'" : "") + std::string(cell);
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::optional<double> as_number(std::string_view cell) {
  double value = 0;
  const auto [end, fault] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (cell.empty() || fault != std::errc{} || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

double csv_number(const std::string& cell, const CsvReader& reader) {
  if (cell.empty()) return kNone;
  if (const auto value = as_number(cell)) return *value;
  throw Error(fmt::format("expected a number, but got \"{}\"", printable(cell))).in(reader.where());
}

int64_t csv_index(const std::string& cell, const CsvReader& reader) {
  if (cell.empty()) return -1;
  int64_t value = 0;
  const auto [end, fault] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (fault != std::errc{} || end != cell.data() + cell.size() || value < 0 || value > INT32_MAX)
    throw Error(fmt::format("expected a whole number, but got \"{}\"", printable(cell))).in(reader.where());
  return value;
}

}  // namespace rankscope
