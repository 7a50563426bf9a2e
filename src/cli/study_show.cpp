// study show: the figure in the terminal, and the table with the columns of published and of reference
// values.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/stats.h"
#include "base/suggest.h"
#include "cli/saved.h"
#include "cli/study.h"
#include "report/plot.h"
#include "report/terminal.h"
#include "report/text.h"
#include "sweep/tables.h"

namespace rankscope {
namespace {

constexpr int kHeight = 16;

// Published values have a configuration too: what their columns say.
Config config_of(const Published& table, const Published::Row& row) {
  Config out;
  for (size_t i = 0; i < table.columns.size(); ++i) out[table.columns[i]] = row.point[i];
  return out;
}

// A published value belongs into the figure where one of our points agrees with it in what the study fixes
// and in everything else that the figure itself does not tell apart.
bool comparable(const Config& published, const Study& study, const std::vector<Point>& all) {
  const Figure& figure = study.figure;
  return std::any_of(all.begin(), all.end(), [&](const Point& point) {
    return has_fixed_settings(study, point.config) &&
           std::all_of(published.begin(), published.end(), [&](const auto& entry) {
             const auto& [key, value] = entry;
             if (key == figure.x || std::find(figure.by.begin(), figure.by.end(), key) != figure.by.end())
               return true;
             return !point.config.contains(key) || has_setting(study, point.config, key, value);
           });
  });
}

// What tells points apart that would stand at one place of one curve: other steps, another learning rate.
std::vector<std::string> untold_settings(const Figure& figure, const std::vector<Point>& all) {
  std::vector<std::string> place = figure.by;
  place.push_back(figure.x);
  std::map<std::string, std::vector<Point>> together;
  for (const Point& point : all) together[settings_text(point.config, place)].push_back({point.config, {}});
  std::vector<std::string> out;
  for (const auto& [at, points] : together)
    for (const std::string& key : varying(points))
      if (std::find(out.begin(), out.end(), key) == out.end()) out.push_back(key);
  return out;
}

// With two or more keys in `by`, one panel for each value of the first.
struct Panel {
  std::map<std::string, PlotCurve> ours, published, reference, bounds, lines;  // by label
};

void add(std::map<std::string, PlotCurve>& curves, const std::string& label, double x, double y) {
  curves[label].points.emplace_back(x, y);
}

std::vector<PlotCurve> curves_of(Panel& panel, const std::string& bound) {
  std::vector<PlotCurve> out;
  std::map<std::string, int> shapes;
  const auto take = [&](std::map<std::string, PlotCurve>& from, const char* suffix, bool open, bool marks) {
    for (auto& [label, curve] : from) {
      std::sort(curve.points.begin(), curve.points.end());
      curve.shape = shapes.emplace(label, static_cast<int>(shapes.size())).first->second;
      curve.open = open;
      curve.marks = marks;
      curve.line = !open;
      curve.label = fmt::format("{}{}{}", label, label.empty() || *suffix == 0 ? "" : ", ", suffix);
      out.push_back(curve);
    }
  };
  take(panel.ours, "ours", false, true);
  take(panel.published, "published", true, true);
  take(panel.reference, "reference", true, true);
  take(panel.bounds, bound.c_str(), false, false);
  take(panel.lines, "", false, false);
  return out;
}

// A result that has one value for a whole panel: chance, the network itself. Across the panel at its mean.
void add_line(std::map<std::string, Panel>& panels, const std::string& name, const std::string& x,
              const std::vector<Point>& all) {
  std::vector<double> places, values;
  for (const Point& point : all) {
    places.push_back(number_or_nan(point.config, x));
    const Summary s = summarise(point, name);
    values.insert(values.end(), s.every.begin(), s.every.end());
  }
  if (values.empty()) return;
  const auto [first, last] = std::minmax_element(places.begin(), places.end());
  for (auto& [title, panel] : panels)
    for (const double at : {*first, *last}) add(panel.lines, name, at, arithmetic_mean(values).value);
}

void print_figure(const Study& study, const std::string& metric, const std::vector<Point>& all,
                  const TerminalStyle& style, std::ostream& out) {
  const Figure& figure = study.figure;
  const bool split = figure.by.size() > 1;
  std::vector<std::string> inner(figure.by.begin() + (split ? 1 : 0), figure.by.end());
  for (const std::string& key : untold_settings(figure, all)) inner.push_back(key);
  std::map<std::string, Panel> panels;
  const auto panel_of = [&](const Config& config) -> Panel& {
    return panels[split ? settings_text(config, {figure.by[0]}) : ""];
  };
  size_t left_out = 0;
  for (const Point& point : all) {
    const double x = number_or_nan(point.config, figure.x), y = summarise(point, metric).mean;
    left_out += (figure.log_x && x <= 0) || (figure.log_y && y <= 0);
    Panel& panel = panel_of(point.config);
    add(panel.ours, settings_text(point.config, inner), x, y);
    if (!figure.bound.empty() && metric == figure.y)
      add(panel.bounds, settings_text(point.config, inner), x, summarise(point, figure.bound).mean);
  }
  for (const Published& table : study.published) {
    if (table.metric != metric) continue;
    for (const Published::Row& row : table.rows) {
      const Config config = config_of(table, row);
      if (!comparable(config, study, all)) continue;
      Panel& panel = panel_of(config);
      add(table.printed ? panel.published : panel.reference, settings_text(config, inner),
          number_or_nan(config, figure.x), row.value);
    }
  }
  const PlotAxes axes{figure.x, metric, figure.log_x, figure.log_y};
  if (metric == figure.y)
    for (const std::string& name : figure.lines) add_line(panels, name, figure.x, all);
  for (auto& [title, panel] : panels) {
    if (panel.ours.empty()) continue;  // nothing of ours to look at yet
    const std::vector<std::string> lines =
        draw_plot(curves_of(panel, figure.bound), axes, style.width, kHeight, style.unicode);
    if (lines.empty()) continue;
    if (!title.empty()) out << terminal_text(title) << "\n";
    for (const std::string& line : lines) out << line << "\n";
    out << "\n";
  }
  if (left_out > 0)
    out << fmt::format("note: {} of {} points at or below 0 are not on the logarithmic axis\n\n", left_out,
                       all.size());
}

using Cells = std::vector<std::string>;

// Columns in which no row has anything to say are left out.
void print_cells(const std::vector<Cells>& rows, std::ostream& out) {
  std::vector<int> widths(rows.front().size(), 0);
  std::vector<bool> says(widths.size(), false);
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(rows[r][i]));
      says[i] = says[i] || (r > 0 && rows[r][i] != "-" && !rows[r][i].empty());
    }
  for (const Cells& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      if (says[i]) line += (i + 1 == row.size() ? row[i] : pad_left(row[i], widths[i])) + "  ";
    out << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  }
}

// The tables whose values stand beside a point: of each kind the first that has one.
struct Beside {
  const Published *published = nullptr, *reference = nullptr;
  const Published* ratio() const { return published != nullptr ? published : reference; }
};

Beside beside_of(const Study& study, const std::string& metric, const Config& config) {
  Beside out;
  for (const Published& table : study.published) {
    const Published*& place = table.printed ? out.published : out.reference;
    if (table.metric == metric && place == nullptr && published_value(study, table, config)) place = &table;
  }
  return out;
}

// Ours over what stands beside it; nothing where one of them is missing.
std::optional<double> ratio_of(const Study& study, const Beside& beside, const Summary& ours,
                               const Config& config) {
  const Published* table = beside.ratio();
  if (table == nullptr) return {};
  const double over =
      (table->statistic == "mean" ? ours.mean : ours.best) / *published_value(study, *table, config);
  return std::isfinite(over) ? std::optional(over) : std::nullopt;
}

Cells row_of(const Study& study, const std::string& metric, const Point& point, const Cells& keys) {
  const Summary s = summarise(point, metric);
  Cells row;
  for (const std::string& key : keys) {
    const auto found = point.config.find(key);
    row.push_back(found == point.config.end() ? "" : terminal_text(to_text(found->second)));
  }
  row.push_back(fmt::format("{}", s.every.empty() ? point.trials.size() : s.every.size()));
  for (const double value : {s.mean, s.stderr_, s.median, s.best}) row.push_back(number_text(value));
  const Beside beside = beside_of(study, metric, point.config);
  const auto cell = [&](const Published* table) {
    return table == nullptr ? "-" : number_text(*published_value(study, *table, point.config));
  };
  const std::string published = cell(beside.published), reference = cell(beside.reference);
  const std::optional<double> ratio = ratio_of(study, beside, s, point.config);
  row.push_back(published);
  row.push_back(reference);
  row.push_back(ratio ? fmt::format("{:.2f}", *ratio) : "-");
  const bool bounded = !study.figure.bound.empty() && metric == study.figure.y;
  row.push_back(bounded ? number_text(summarise(point, study.figure.bound).mean) : "-");
  row.push_back(metric == "test_mse" ? judgement(point) : "");
  return row;
}

// Points without the metric are left out, unless it is empty: then the table has none.
void print_table(const Study& study, const std::string& metric, const std::vector<Point>& all,
                 std::ostream& out) {
  Cells keys = study.figure.by;  // as the figure reads, then whatever else varies
  if (std::find(keys.begin(), keys.end(), study.figure.x) == keys.end()) keys.push_back(study.figure.x);
  for (const std::string& key : varying(all))
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  Cells header;
  for (const std::string& key : keys) header.push_back(terminal_text(key));
  for (const char* name :
       {"seeds", "mean", "s.e.", "median", "best", "published", "reference", "ratio", "bound", ""})
    header.emplace_back(name);
  std::vector<Cells> rows{header};
  for (const Point& point : all)
    if (metric.empty() || !summarise(point, metric).every.empty())
      rows.push_back(row_of(study, metric, point, keys));
  if (!metric.empty()) out << terminal_text(metric) << "\n";
  print_cells(rows, out);
}

// Which settings were not the study's, in how many of the ratios: `changed` has a list for each.
std::string otherwise_text(const std::vector<Cells>& changed) {
  std::map<std::string, size_t> rows;  // by setting
  size_t differ = 0;
  for (const Cells& settings : changed) {
    for (const std::string& setting : settings) ++rows[setting];
    differ += !settings.empty();
  }
  if (differ == 0) return "";
  const bool same = std::all_of(rows.begin(), rows.end(),
                                [&](const auto& setting) { return setting.second == changed.size(); });
  Cells told;
  for (const auto& [setting, count] : rows)
    told.push_back(same ? setting : fmt::format("{} in {}", setting, count));
  const std::string list = fmt::format("{}", fmt::join(told, ", "));
  return same ? fmt::format(" Ours were trained otherwise: {}. The ratio compares different settings.", list)
              : fmt::format(" In {} of {} ratios ours were trained otherwise: {}. {} different settings.",
                            differ, changed.size(), list, differ == 1 ? "It compares" : "They compare");
}

void print_notes(const Study& study, const std::string& metric, const std::vector<Point>& all,
                 const TerminalStyle& style, std::ostream& out) {
  for (const Published& table : study.published) {
    if (table.metric != metric) continue;
    std::vector<Config> shown;   // our points that have a value of this table in their row
    std::vector<Cells> changed;  // of those whose ratio is over it
    bool in_ratio = false;
    for (const Point& point : all) {
      const Beside beside = beside_of(study, metric, point.config);
      if (beside.published != &table && beside.reference != &table) continue;
      shown.push_back(point.config);
      in_ratio = in_ratio || beside.ratio() == &table;
      if (beside.ratio() == &table && ratio_of(study, beside, summarise(point, metric), point.config))
        changed.push_back(changed_settings(study, table, point.config));
    }
    Published one = table;  // several of ours may stand beside one of theirs
    const auto beside = std::count_if(table.rows.begin(), table.rows.end(), [&](const Published::Row& row) {
      one.rows = {row};
      return std::any_of(shown.begin(), shown.end(), [&](const Config& config) {
        return published_value(study, one, config).has_value();
      });
    });
    Cells said;  // a table may leave either out
    for (const std::string& text : {table.budget, table.source})
      if (!text.empty()) said.push_back(text);
    const std::string note = fmt::format(
        "{}{}{}.{} {} of its {} values have ours beside them.{}", table.kind(), said.empty() ? "" : ": ",
        fmt::join(said, "; "),
        in_ratio || shown.empty() ? fmt::format(" Ratio: the {} of our seeds over it.", table.statistic) : "",
        beside, table.rows.size(), otherwise_text(changed));
    for (const std::string& line : wrap(terminal_text(note), style.width)) out << line << "\n";
  }
  for (const std::string& note : precision_notes(all))
    for (const std::string& line : wrap(terminal_text(note), style.width)) out << line << "\n";
}

// A result that a study's file names and no trial has: most likely it is misspelt.
std::vector<std::string> unknown_results(const Study& study, const std::vector<std::string>& known) {
  std::vector<std::pair<std::string, std::string>> asked;  // who asks, and for what
  if (!study.figure.bound.empty()) asked.emplace_back("bound of the figure", study.figure.bound);
  for (const std::string& line : study.figure.lines) asked.emplace_back("lines of the figure", line);
  for (const Published& table : study.published)
    asked.emplace_back(fmt::format("metric of what is {}", table.kind()), table.metric);
  std::set<std::string> notes;
  for (const auto& [who, what] : asked)
    if (!known.empty() && std::find(known.begin(), known.end(), what) == known.end()) {
      const std::string like = nearest(what, known, 1).front();
      const bool misspelt = edit_distance(what, like) <= std::max<size_t>(1, what.size() / 4);
      notes.insert(fmt::format("note: none of these trials has {}, the {}{}", what, who,
                               misspelt ? "; the nearest they have is " + like : ""));
    }
  return {notes.begin(), notes.end()};
}

// Not every trial has every result: heads that mix nothing have no share. What the figure draws may be one.
void print_without_figure(const Study& study, const std::vector<std::string>& known,
                          const std::vector<Point>& all, const TerminalStyle& style, std::ostream& out) {
  const std::string note = fmt::format(
      "None of these trials has {}, which the figure draws. With --metric NAME, study show draws: {}",
      study.figure.y, fmt::join(known, ", "));
  for (const std::string& line : wrap(terminal_text(note), style.width)) out << line << "\n";
  out << "\n";
  print_table(study, "", all, out);
}

}  // namespace

void print_study(const Store& store, const std::string& metric, Io& io) {
  const Study study = store.study();
  const std::string name = metric.empty() ? study.figure.y : metric;
  const std::vector<StoredTrial> trials = with_defaults(study, store.trials());
  const std::vector<Point> all = points(trials);
  const TerminalStyle style = terminal_style(STDOUT_FILENO);
  std::vector<std::string> known;
  for (const StoredTrial& trial : trials)
    for (const auto& [key, value] : trial.values)
      if (std::find(known.begin(), known.end(), key) == known.end()) known.push_back(key);
  const bool missing = !known.empty() && std::find(known.begin(), known.end(), name) == known.end();
  if (missing && !metric.empty()) throw unknown_name("result", name, known);
  io.out << fmt::format("{}: {}\n", study.name, terminal_text(study.title));
  for (const std::string& line : wrap(terminal_text(study.question), style.width)) io.out << line << "\n";
  io.out << "\n";
  if (all.empty()) {
    const Counts n = store.counts();
    io.out << fmt::format("no trial is done yet: {} pending, {} running, {} failed\n", n.pending, n.running,
                          n.failed);
    return;
  }
  if (missing) return print_without_figure(study, known, all, style, io.out);
  print_figure(study, name, all, style, io.out);
  print_table(study, name, all, io.out);
  for (const std::string& note : unknown_results(study, known))
    for (const std::string& line : wrap(terminal_text(note), style.width)) io.out << line << "\n";
  print_notes(study, name, all, style, io.out);
  const Counts n = store.counts();
  if (n.failed + n.pending + n.running > 0)  // seeds of the table are those that ended
    io.out << fmt::format("not in it: {} failed, {} pending, {} running\n", n.failed, n.pending, n.running);
}

int study_show(const StudyOptions& o, Io& io) {
  print_study(Store::look_at(o.folder), o.metric, io);
  const std::string page = (std::filesystem::path(o.folder) / "report.html").string();
  if (::access(o.folder.c_str(), W_OK) != 0) {  // it was shown all the same
    if (!io.quiet)
      io.err << fmt::format(
          "no page beside it, where nothing can be written: rankscope report {} --out FILE\n",
          printable(o.folder, 400));
    return 0;
  }
  write_folders_page(read_folders({o.folder}), nullptr, page);
  if (!io.quiet) io.err << fmt::format("wrote {}\n", printable(page, 400));
  return 0;
}

}  // namespace rankscope
