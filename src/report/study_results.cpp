#include "report/study_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/held_folder.h"
#include "base/table.h"
#include "report/json.h"
#include "report/read.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLargestTable = uint64_t{1} << 28;
constexpr uint64_t kLargestCurve = uint64_t{1} << 26;
constexpr size_t kMostLogged = 16;      // values in a line of a curve
constexpr size_t kCurvePoints = 400;    // a curve, more than a plot has pixels for
constexpr size_t kAllPoints = 200'000;  // of all curves together

size_t column(const CellTable& table, const std::string& name, const fs::path& file) {
  if (const auto at = table.find(name)) return *at;
  throw Error(fmt::format("there is no column \"{}\"", printable(name)))
      .in(file.string())
      .hint(printable(fmt::format("{}", fmt::join(table.columns, ", ")), 400));
}

// What our trials have in the columns that a published table shares with them and the figure does not tell
// apart.
class Comparable {
 public:
  Comparable(const CellTable& published, const CellTable& trials, const StudyResults::Figure& figure) {
    std::vector<size_t> ours;
    for (size_t c = 0; c < published.columns.size(); ++c) {
      const std::string& name = published.columns[c];
      const bool told = name == figure.x || std::count(figure.by.begin(), figure.by.end(), name) > 0;
      const auto place = trials.find(name);
      if (told || !place) continue;
      theirs_.push_back(c);
      ours.push_back(*place);
    }
    for (const auto& row : trials.rows) {
      std::vector<std::string> cells;
      for (const size_t c : ours) cells.push_back(row[c]);
      seen_.insert(std::move(cells));
    }
  }

  /// Some trial agrees with the row; an empty cell agrees with all.
  bool holds(const std::vector<std::string>& row) const {
    return seen_.empty() || std::any_of(seen_.begin(), seen_.end(), [&](const auto& cells) {
             for (size_t i = 0; i < cells.size(); ++i)
               if (!row[theirs_[i]].empty() && row[theirs_[i]] != cells[i]) return false;
             return true;
           });
  }

 private:
  std::vector<size_t> theirs_;
  std::set<std::vector<std::string>> seen_;
};

// What stands beside the figure's y: x, the columns of `by`, value, note and kind (published or reference),
// each row once.
CellTable published_beside(const CellTable& trials, const CellTable& all, const StudyResults::Figure& figure,
                           const fs::path& file) {
  std::vector<std::string> keys{figure.x};
  keys.insert(keys.end(), figure.by.begin(), figure.by.end());
  const size_t value = column(all, "published", file);
  column(all, figure.x, file);
  const auto metric = all.find("metric"), budget = all.find("budget"), provenance = all.find("provenance"),
             older = all.find("kind");  // the column's name before, which settings may have, too
  CellTable out{keys, {}};
  out.columns.insert(out.columns.end(), {"value", "note", "kind"});
  const Comparable comparable(all, trials, figure);
  std::set<std::vector<std::string>> seen;
  for (const auto& row : all.rows) {
    if ((metric && row[*metric] != figure.y) || !comparable.holds(row)) continue;
    std::vector<std::string> cells;
    for (const std::string& key : keys) cells.push_back(all.find(key) ? row[*all.find(key)] : "");
    cells.push_back(row[value]);
    cells.push_back(budget ? row[*budget] : "");
    const auto kind = provenance ? provenance : older;
    cells.push_back(kind ? row[*kind] : "published");
    if (seen.insert(cells).second) out.rows.push_back(std::move(cells));
  }
  return out;
}

// What our trials changed of the study's protocol, where a value stands beside them.
std::vector<std::string> changes_beside(const CellTable& all) {
  const auto changed = all.find("changed");
  std::set<std::string> out;
  for (const auto& row : all.rows)
    if (changed && !row[*changed].empty()) out.insert(row[*changed]);
  return {out.begin(), out.end()};
}

std::vector<std::string> names(const JsonObject& o, const char* key, const std::string& place) {
  std::vector<std::string> out;
  if (!o.has(key)) return out;
  const Error fault = Error("expected a list of columns").in(fmt::format("{}, {}", place, key));
  if (!o.at(key).is_array()) throw fault;
  for (const Json& name : o.at(key)) {
    if (!name.is_string()) throw fault;
    out.push_back(name.get<std::string>());
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
  f.by = names(o, "by", place);
  f.lines = names(o, "lines", place);
  return f;
}

// Ids become parts of paths: nothing but letters, digits, - and _ may.
bool is_plain(const std::string& id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
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
    curve.step.push_back(kNone);
    for (const auto& [name, value] : entry.items()) {
      if (!value.is_number()) continue;
      if (name == "step") {
        curve.step.back() = value.get<double>();
      } else if (curve.values.contains(name) || curve.values.size() < kMostLogged) {
        std::vector<double>& column = curve.values[name];
        column.resize(curve.step.size(), kNone);
        column.back() = value.get<double>();
      }
    }
  }
  for (auto& [name, column] : curve.values) column.resize(curve.step.size(), kNone);
  return curve;
}

// What lies outside of the folder is not shown: a link would make it part of a page that is passed on.
bool has_curve(const fs::path& folder, const std::string& id, const fs::path& curve) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(curve, ignored))) return false;
  if (HeldFolder(folder).has_file({"trials", id, curve.filename().string()})) return true;
  throw Error("a link or a pipe stands among the results").in(curve.string());
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

StudyResults read_study(const fs::path& folder) {
  StudyTables tables{read_json(folder / "study.json", kLargestTable), read_csv(folder / "trials.csv"), {}};
  if (const fs::path published = folder / "published.csv"; fs::exists(published))
    tables.published = read_csv(published);
  return study_results(tables, folder);
}

StudyResults study_results(const StudyTables& tables, const fs::path& folder) {
  StudyResults s;
  s.name = folder_name(folder);
  const fs::path about = folder / "study.json", trials = folder / "trials.csv";
  const JsonObject o(tables.about, about.string());
  require_known_schema(o);
  s.title = o.string("title", s.name);
  s.question = o.string("question", "");
  s.paper = o.string("paper", "");
  s.keys = names(o, "keys", about.string());
  s.figure = read_figure(o.at("figure"), about.string() + ", figure");
  const bool drawn = !s.figure.x.empty();
  if (!drawn) s.figure.x = "id";  // a study without a figure: trial beside trial
  s.trials = tables.trials;
  const size_t id = column(s.trials, "id", trials);
  column(s.trials, "state", trials);
  if (!s.trials.rows.empty()) {
    column(s.trials, s.figure.x, trials);
    for (const std::string& name : s.figure.by) column(s.trials, name, trials);
  }
  s.changed = changes_beside(tables.published);
  if (drawn && !tables.published.columns.empty())
    s.published = published_beside(s.trials, tables.published, s.figure, folder / "published.csv");
  const size_t most =
      std::clamp<size_t>(kAllPoints / std::max<size_t>(1, s.trials.rows.size()), 20, kCurvePoints);
  for (const auto& row : s.trials.rows) {
    if (!is_plain(row[id]))
      throw Error(fmt::format("\"{}\" is no id of a trial", printable(row[id]))).in(trials.string());
    const fs::path curve = folder / "trials" / row[id] / "curve.jsonl";
    if (has_curve(folder, row[id], curve)) s.curves[row[id]] = read_curve(curve, most);
  }
  return s;
}

void write_study(const StudyResults& s, const TextSink& sink) {
  const StudyResults::Figure& f = s.figure;
  sink(
      fmt::format("{{\"name\":{},\"title\":{},\"question\":{},\"paper\":{},\n\"figure\":{{\"x\":{},\"y\":{},"
                  "\"by\":{},\"log_x\":{},"
                  "\"log_y\":{},\"bound\":{},\"lines\":{}}},\n\"keys\":{},\n\"columns\":{},\n\"trials\":",
                  json_string(s.name), json_string(s.title), json_string(s.question), json_string(s.paper),
                  json_string(f.x), json_string(f.y), quoted_list(f.by), f.log_x, f.log_y,
                  f.bound.empty() ? "null" : json_string(f.bound), quoted_list(f.lines), quoted_list(s.keys),
                  quoted_list(s.trials.columns)));
  write_rows(s.trials, sink);
  sink(fmt::format(",\n\"published\":{{\"columns\":{},\"rows\":", quoted_list(s.published.columns)));
  write_rows(s.published, sink);
  sink(fmt::format("}},\n\"changed\":{},\n\"curves\":{{", quoted_list(s.changed)));
  const char* before = "";
  for (const auto& [id, c] : s.curves) {
    std::vector<std::string> columns{fmt::format("\"step\":{}", numbers(c.step))};
    for (const auto& [name, values] : c.values)
      columns.push_back(fmt::format("{}:{}", json_string(name), numbers(values)));
    sink(fmt::format("{}{}:{{{}}}", before, json_string(id), fmt::join(columns, ",")));
    before = ",\n";
  }
  std::map<std::string, int64_t> states;
  for (const auto& row : s.trials.rows) ++states[row[s.trials.find("state").value()]];
  sink("},\n\"states\":{");
  before = "";
  for (const auto& [state, count] : states) {
    sink(fmt::format("{}{}:{}", before, json_string(state), count));
    before = ",";
  }
  sink("}}");
}

}  // namespace rankscope
