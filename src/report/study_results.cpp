#include "report/study_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/table.h"
#include "report/figure.h"
#include "report/json.h"
#include "report/read.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLargestTable = uint64_t{1} << 28;
constexpr uint64_t kLargestCurve = uint64_t{1} << 26;
constexpr size_t kCurvePoints = 400;    // a curve, more than a plot has pixels for
constexpr size_t kAllPoints = 200'000;  // of all curves together

size_t column(const CellTable& table, const std::string& name, const fs::path& file) {
  const auto it = std::find(table.columns.begin(), table.columns.end(), name);
  if (it == table.columns.end())
    throw Error(fmt::format("there is no column \"{}\"", printable(name)))
        .in(file.string())
        .hint(printable(fmt::format("{}", fmt::join(table.columns, ", ")), 400));
  return static_cast<size_t>(it - table.columns.begin());
}

std::optional<size_t> find(const CellTable& table, const std::string& name) {
  const auto it = std::find(table.columns.begin(), table.columns.end(), name);
  if (it == table.columns.end()) return std::nullopt;
  return static_cast<size_t>(it - table.columns.begin());
}

// What was published of the figure's y: x, the columns of `by`, value and note, each row once.
CellTable read_published(const fs::path& file, const StudyResults::Figure& figure) {
  const CellTable all = read_table(file);
  std::vector<std::string> keys{figure.x};
  keys.insert(keys.end(), figure.by.begin(), figure.by.end());
  const size_t value = column(all, "published", file);
  column(all, figure.x, file);
  const auto metric = find(all, "metric"), budget = find(all, "budget");
  CellTable out{keys, {}};
  out.columns.insert(out.columns.end(), {"value", "note"});
  std::set<std::vector<std::string>> seen;
  for (const auto& row : all.rows) {
    if (metric && row[*metric] != figure.y) continue;
    std::vector<std::string> cells;
    for (const std::string& key : keys) cells.push_back(find(all, key) ? row[*find(all, key)] : "");
    cells.push_back(row[value]);
    cells.push_back(budget ? row[*budget] : "");
    if (seen.insert(cells).second) out.rows.push_back(std::move(cells));
  }
  return out;
}

StudyResults::Figure read_figure(const Json& value, const std::string& place) {
  const JsonObject o(value, place);
  StudyResults::Figure f;
  f.x = o.string("x");
  f.y = o.string("y");
  f.bound = o.has("bound") ? o.string("bound") : "";
  f.log_x = o.boolean("log_x", false);
  f.log_y = o.boolean("log_y", false);
  if (!o.has("by")) return f;
  if (!o.at("by").is_array()) throw Error("expected a list of columns").in(place + ", by");
  for (const Json& name : o.at("by")) {
    if (!name.is_string()) throw Error("expected a list of columns").in(place + ", by");
    f.by.push_back(name.get<std::string>());
  }
  return f;
}

// Ids become parts of paths: nothing but letters, digits, - and _ may.
bool is_plain(const std::string& id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
}

double member(const Json& line, const char* key) {
  const auto it = line.find(key);
  return it != line.end() && it->is_number() ? it->get<double>() : kNone;
}

StudyCurve read_curve(const fs::path& file, size_t most) {
  const std::string text = read_file(file, kLargestCurve);
  std::vector<std::string_view> lines;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    if (end > at) lines.push_back(std::string_view(text).substr(at, end - at));
  StudyCurve curve;
  const size_t count = std::min(lines.size(), most);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view line = lines[count == 1 ? lines.size() - 1 : i * (lines.size() - 1) / (count - 1)];
    const Json entry = parse_json(line, file.string());
    if (!entry.is_object()) throw Error("expected an object in every line").in(file.string());
    curve.step.push_back(member(entry, "step"));
    curve.loss.push_back(member(entry, "loss"));
    curve.test_mse.push_back(member(entry, "test_mse"));
  }
  return curve;
}

std::optional<double> as_number(const std::string& cell) {
  double value = 0;
  const auto [end, fault] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (cell.empty() || fault != std::errc{} || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) out.push_back(json_string(text));
  return fmt::format("[{}]", fmt::join(out, ","));
}

std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> out;
  for (const double x : values) out.push_back(json_number(x));
  return fmt::format("[{}]", fmt::join(out, ","));
}

// A column is of numbers when every filled cell is one; an id may look like a number and is none.
std::vector<bool> number_columns(const CellTable& table) {
  std::vector<bool> out(table.columns.size());
  for (size_t c = 0; c < out.size(); ++c)
    out[c] = table.columns[c] != "id" &&
             std::all_of(table.rows.begin(), table.rows.end(),
                         [&](const auto& row) { return row[c].empty() || as_number(row[c]); });
  return out;
}

void write_rows(const CellTable& table, const TextSink& sink) {
  const std::vector<bool> is_number = number_columns(table);
  const char* before = "[";
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (size_t c = 0; c < row.size(); ++c)
      cells.push_back(row[c].empty() ? "null"
                      : is_number[c] ? json_number(*as_number(row[c]))
                                     : json_string(row[c]));
    sink(fmt::format("{}[{}]", before, fmt::join(cells, ",")));
    before = ",\n";
  }
  sink(table.rows.empty() ? "[]" : "]");
}

}  // namespace

bool is_study_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "study.json", ignored) &&
         fs::is_regular_file(folder / "trials.csv", ignored);
}

StudyResults read_study(const fs::path& tables, const fs::path& curves) {
  const fs::path& folder = curves.empty() ? tables : curves;
  StudyResults s;
  s.name = folder_name(folder);
  const fs::path about = tables / "study.json", trials = tables / "trials.csv",
                 published = tables / "published.csv";
  const Json description = read_json(about, kLargestTable);
  const JsonObject o(description, about.string());
  s.title = o.string("title", s.name);
  s.question = o.string("question", "");
  s.figure = read_figure(o.at("figure"), about.string() + ", figure");
  s.trials = read_table(trials);
  const size_t id = column(s.trials, "id", trials);
  column(s.trials, "state", trials);
  if (!s.trials.rows.empty()) {
    column(s.trials, s.figure.x, trials);
    for (const std::string& name : s.figure.by) column(s.trials, name, trials);
  }
  if (fs::exists(published)) s.published = read_published(published, s.figure);
  const size_t most =
      std::clamp<size_t>(kAllPoints / std::max<size_t>(1, s.trials.rows.size()), 20, kCurvePoints);
  for (const auto& row : s.trials.rows) {
    if (!is_plain(row[id]))
      throw Error(fmt::format("\"{}\" is no id of a trial", printable(row[id]))).in(trials.string());
    const fs::path curve = folder / "trials" / row[id] / "curve.jsonl";
    if (fs::exists(curve)) s.curves[row[id]] = read_curve(curve, most);
  }
  return s;
}

void write_study(const StudyResults& s, const TextSink& sink) {
  const StudyResults::Figure& f = s.figure;
  sink(fmt::format(
      "{{\"name\":{},\"title\":{},\"question\":{},\n\"figure\":{{\"x\":{},\"y\":{},\"by\":{},\"log_x\":{},"
      "\"log_y\":{},\"bound\":{}}},\n\"columns\":{},\n\"trials\":",
      json_string(s.name), json_string(s.title), json_string(s.question), json_string(f.x), json_string(f.y),
      quoted_list(f.by), f.log_x, f.log_y, f.bound.empty() ? "null" : json_string(f.bound),
      quoted_list(s.trials.columns)));
  write_rows(s.trials, sink);
  sink(fmt::format(",\n\"published\":{{\"columns\":{},\"rows\":", quoted_list(s.published.columns)));
  write_rows(s.published, sink);
  sink("},\n\"curves\":{");
  const char* before = "";
  for (const auto& [id, c] : s.curves) {
    sink(fmt::format("{}{}:{{\"step\":{},\"loss\":{},\"test_mse\":{}}}", before, json_string(id),
                     numbers(c.step), numbers(c.loss), numbers(c.test_mse)));
    before = ",\n";
  }
  std::map<std::string, int64_t> states;
  const auto at =
      std::find(s.trials.columns.begin(), s.trials.columns.end(), "state") - s.trials.columns.begin();
  for (const auto& row : s.trials.rows) ++states[row[static_cast<size_t>(at)]];
  sink("},\n\"states\":{");
  before = "";
  for (const auto& [state, count] : states) {
    sink(fmt::format("{}{}:{}", before, json_string(state), count));
    before = ",";
  }
  sink("}}");
}

}  // namespace rankscope
