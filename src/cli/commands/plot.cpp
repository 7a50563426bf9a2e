// rankscope plot: a figure for a paper out of result tables, or a quick look at it in the terminal.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/plot_mixture.h"
#include "cli/plot_names.h"
#include "report/figure.h"
#include "report/names.h"
#include "report/plot.h"
#include "report/terminal.h"
#include "report/text.h"
#include "sweep/gathered.h"
#include "sweep/tables.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr int kRows = 16;  // of a plot in the terminal

struct PlotOptions {
  std::vector<std::string> tables, where;
  NamedFigure figure;
  std::string size = "3.25x2.2in", out;
};

// "3.25x2.2in", "85x60mm", "9x6cm", "240x160pt".
void parse_size(const std::string& text, FigureStyle& style) {
  const std::map<std::string, double> units{{"in", 72}, {"cm", 72 / 2.54}, {"mm", 72 / 25.4}, {"pt", 1}};
  const size_t cross = text.find('x');
  const auto unit = units.find(text.size() > 2 ? text.substr(text.size() - 2) : "");
  try {
    if (cross != std::string::npos && unit != units.end()) {
      const std::string height = text.substr(cross + 1, text.size() - cross - 3);
      size_t used_w = 0, used_h = 0;
      const double w = std::stod(text, &used_w), h = std::stod(height, &used_h);
      style.width = w * unit->second;
      style.height = h * unit->second;
      const bool sane =
          style.width >= 36 && style.height >= 36 && style.width <= 7200 && style.height <= 7200;
      if (used_w == cross && used_h == height.size() && sane) return;
    }
  } catch (const std::logic_error&) {
  }
  throw usage_error(
      fmt::format("expected a size as 3.25x2.2in (in, cm, mm or pt), but got \"{}\"", printable(text)))
      .in("--size");
}

// A folder stands for the table in it.
fs::path table_of(const std::string& name) {
  if (!fs::is_directory(name)) return name;
  for (const char* file : {"metrics.csv", "trials.csv"})
    if (fs::exists(fs::path(name) / file)) return fs::path(name) / file;
  throw Error("there is no metrics.csv and no trials.csv").in(name);
}

// A text that happens to have commas reads as a table, too: of one line, or of lines with one cell.
CellTable read_table(const std::string& name) {
  const fs::path file = table_of(name);
  const auto no_table = [&](const std::string& what) {
    return Error(what)
        .in(file.string())
        .hint("give a table (.csv) whose first line names its columns, or a folder that --out wrote");
  };
  CellTable table;
  try {
    table = read_csv(file);
  } catch (const Error& e) {
    if (file.extension() == ".csv" || !fs::is_regular_file(file)) throw;
    throw no_table(fmt::format("this is no table: {}", e.message()));
  }
  if (table.columns.size() < 2)
    throw no_table(fmt::format("this is no table: its first line names no columns, but is \"{}\"",
                               printable(table.columns.front(), 40)));
  if (table.rows.empty()) throw no_table("this is no table: it has one line, and no rows below it");
  return table;
}

// What is drawn; of trials, which columns are settings.
struct Drawn {
  std::vector<CellTable> tables;
  std::vector<std::vector<std::string>> settings;
};

Drawn read_tables(const std::vector<std::string>& names) {
  Drawn out;
  for (const std::string& name : names) {
    if (has_store(name)) {  // a trials.csv beside it may be older
      StudyTables study = study_tables(Store::look_at(name));
      out.tables.push_back(std::move(study.trials));
      out.settings.push_back(settings_of(study.about));
    } else {
      out.tables.push_back(read_table(name));
      out.settings.push_back(settings_beside(table_of(name)));
    }
  }
  return out;
}

bool has_streams(const CellTable& table) {
  const auto at = table.find("stream");
  return at && std::any_of(table.rows.begin(), table.rows.end(),
                           [&](const auto& row) { return *at < row.size() && !row[*at].empty(); });
}

// Tables are told apart by their folder; one table by its variants, and by its streams where it has several.
void name_curves(std::vector<CellTable>& tables, const PlotOptions& o, FigureRequest& request) {
  const auto short_name = [](const std::string& table) {
    const fs::path path = fs::absolute(table).lexically_normal();
    return path.extension() == ".csv" ? path.parent_path().filename().string() : path.filename().string();
  };
  std::map<std::string, int> named;
  for (const std::string& table : o.tables) ++named[short_name(table)];
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i].find("table")) continue;
    tables[i].columns.emplace_back("table");
    const std::string name = short_name(o.tables[i]);
    for (auto& row : tables[i].rows) row.push_back(named[name] > 1 ? o.tables[i] : name);
  }
  if (!request.by.empty()) return;
  if (tables.size() > 1) request.by.emplace_back("table");
  if (tables.front().find("variant")) request.by.emplace_back("variant");
  if (std::any_of(tables.begin(), tables.end(), has_streams)) request.by.emplace_back("stream");
}

void draw_in_terminal(const std::vector<FigureCurve>& curves, const FigureStyle& style, Io& io) {
  std::vector<PlotCurve> lines;
  for (const FigureCurve& c : curves) {
    PlotCurve curve{
        .label = terminal_text(c.name, 60), .points = {}, .shape = static_cast<int>(lines.size())};
    for (const FigurePoint& p : c.points) curve.points.emplace_back(p.x, p.y);
    lines.push_back(std::move(curve));
  }
  const TerminalStyle terminal = terminal_style(STDOUT_FILENO);
  const PlotAxes axes{style.x_label, style.y_label, style.log_x, style.log_y};
  for (const std::string& line : draw_plot(lines, axes, terminal.width, kRows, terminal.unicode))
    io.out << line << "\n";
}

// Names that people read, in a file that goes into a paper; a terminal keeps those that one can type.
void label_figure(std::vector<FigureCurve>& curves, const FigureRequest& request, FigureStyle& style) {
  if (style.x_label.empty())
    style.x_label = request.x == "depth" ? depth_label(request.y) : axis_label(request.x);
  if (style.y_label.empty()) style.y_label = axis_label(request.y);
  if (request.by.size() == 1 && request.by.front() == "variant")
    for (FigureCurve& curve : curves) curve.name = readable_variant(curve.name);
}

// A mean over two settings is a number of neither.
void tell_mixtures(const Drawn& drawn, const PlotOptions& o, Io& io) {
  if (io.quiet) return;
  for (size_t i = 0; i < drawn.tables.size(); ++i) {
    const auto mixed = mixed_settings(drawn.settings[i], drawn.tables[i], o.figure.request);
    if (mixed.empty()) continue;
    const std::string first = mixed.front().substr(0, mixed.front().find(" ("));
    io.err << fmt::format(
        "note: points of {} are means over {} as well; --by {} or --where {}=VALUE keeps them apart\n",
        printable(o.tables[i], 200), fmt::join(mixed, ", "), first, first);
  }
}

// A logarithmic axis has no place for zero and below.
void tell_left_out(const std::vector<FigureCurve>& curves, const FigureStyle& style, Io& io) {
  size_t all = 0, left_out = 0;
  for (const FigureCurve& curve : curves)
    for (const FigurePoint& p : curve.points) {
      ++all;
      left_out += (style.log_x && p.x <= 0) || (style.log_y && p.y <= 0);
    }
  if (left_out == all)
    throw Error("nothing can be drawn on these axes").hint("a logarithmic axis shows values above 0 only");
  if (left_out > 0 && !io.quiet)
    io.err << fmt::format("note: {} of {} points at or below 0 are not on the logarithmic axis\n", left_out,
                          all);
}

int run_plot(PlotOptions& o, Io& io) {
  FigureRequest& request = o.figure.request;
  FigureStyle& style = o.figure.style;
  parse_size(o.size, style);
  for (const std::string& text : o.where) {
    const size_t at = text.find('=');
    if (at == std::string::npos)
      throw usage_error(fmt::format("expected COLUMN=VALUE, but got \"{}\"", printable(text))).in("--where");
    request.where.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  Drawn drawn = read_tables(o.tables);
  spell_out(drawn.tables, o.figure);
  name_curves(drawn.tables, o, request);
  std::vector<FigureCurve> curves = select_curves(drawn.tables, request);
  tell_mixtures(drawn, o, io);
  tell_left_out(curves, style, io);
  if (o.out.empty()) {
    if (style.x_label.empty()) style.x_label = request.x;
    if (style.y_label.empty()) style.y_label = request.y;
    draw_in_terminal(curves, style, io);
    return 0;
  }
  label_figure(curves, request, style);
  draw_figure(o.out, curves, style);
  if (!io.quiet) io.err << fmt::format("wrote {}\n", printable(o.out, 400));
  return 0;
}

std::function<int(Io&)> prepare_plot(CLI::App& app) {
  auto o = std::make_shared<PlotOptions>();
  FigureRequest& r = o->figure.request;
  FigureStyle& style = o->figure.style;
  app.add_option("TABLE", o->tables, "CSV tables, or folders with metrics.csv or trials.csv")->required();
  app.add_option("--y", r.y,
                 "A metric, a heading of scan's table (eff.rank) or, of other tables, a column (test_mse)")
      ->type_name("NAME");  // required, but the answer names what there is
  app.add_option("--x", r.x,
                 "A column: layer, head, rank, ...; depth when left out, and layer where there is none")
      ->type_name("COLUMN");
  app.add_option("--site", r.site, "Rows of this site only: resid_post, ln1.hook_normalized")
      ->type_name("NAME");
  add_list(app, "--by", r.by,
           "Columns that tell the curves apart, by commas; variant, and table or stream for several",
           some_name())
      ->type_name("LIST");
  app.add_option("--band", r.band, "A column for the band around a curve: stderr")->type_name("COLUMN");
  app.add_option("--tokens", o->figure.tokens, "all (as papers plot, where there are both) or content")
      ->type_name("NAME");
  app.add_option("--where", o->where,
                 "Only rows with this value: variant=full; repeat for more columns, or values")
      ->type_name("COLUMN=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--log", style.log_y, "Logarithmic y axis");
  app.add_flag("--log-x", style.log_x, "Logarithmic x axis");
  app.add_option("--size", o->size, "Width and height: 3.25x2.2in, 85x60mm")
      ->type_name("WxH")
      ->capture_default_str();
  app.add_option("--title", style.title, "Above the figure")->type_name("TEXT");
  app.add_option("--x-label", style.x_label, "Instead of the name of the column, in words")
      ->type_name("TEXT");
  app.add_option("--y-label", style.y_label, "Instead of the name of the metric, in words")
      ->type_name("TEXT");
  app.add_option("--out", o->out, "A file that ends in .svg or .pdf; the terminal when left out")
      ->check(some_name())
      ->type_name("FILE");
  return [o](Io& io) { return run_plot(*o, io); };
}

}  // namespace

extern const Command command_plot{
    .name = "plot",
    .summary = "Draw a figure for a paper from result tables: SVG, PDF or the terminal",
    .examples =
        {"rankscope plot out/bert --y residual_l1inf_rel --site resid_post --band stderr --log --out fig.pdf",
         "rankscope plot out/base out/tuned --y effective_rank_rel --site resid_post --where variant=full",
         "rankscope plot out/fig1 --x rank --y test_mse --by layers,width --log --log-x --out fig1.svg"},
    .prepare = prepare_plot};

}  // namespace rankscope
