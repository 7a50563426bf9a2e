#include "report/figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/stats.h"
#include "base/table.h"
#include "report/names.h"

namespace rankscope {
namespace {

size_t require(const CellTable& table, const std::string& column) {
  if (const auto at = table.find(column)) return *at;
  throw unknown_name("column", column, table.columns);
}

double number(const std::string& cell) { return as_number(cell).value_or(kNone); }

// The hook a user means: "resid_post" is "blocks.3.hook_resid_post", and so is "hook_resid_post".
bool is_site(const std::string& site, const std::string& wanted) {
  if (wanted.empty() || site == wanted) return true;
  if (!site.ends_with(wanted)) return false;
  const std::string before = site.substr(0, site.size() - wanted.size());
  return before.ends_with('.') || before.ends_with("hook_");
}

// The ends of a curve over depth: what the first block reads stands before what the blocks leave, the final
// norm after what they read.
bool is_end(const std::string& site, const std::string& wanted) {
  const auto one_of = [&](const char* a, const char* b) { return wanted == a || wanted == b; };
  if (one_of("resid_post", "hook_resid_post")) return is_site(site, "blocks.0.hook_resid_pre");
  return one_of("ln1.hook_normalized", "ln1.normalized") && is_site(site, "ln_final.hook_normalized");
}

std::vector<std::string> values_of(const CellTable& table, size_t column) {
  std::set<std::string> seen;
  for (const auto& row : table.rows) seen.insert(row[column]);
  return {seen.begin(), seen.end()};
}

// A table that has a row for each metric has nothing to draw of all of them together.
void require_one_metric(const CellTable& table, const FigureRequest& request) {
  const auto metric = table.find("metric");
  const bool chosen = std::any_of(request.where.begin(), request.where.end(),
                                  [](const auto& w) { return w.first == "metric"; }) ||
                      std::find(request.by.begin(), request.by.end(), "metric") != request.by.end();
  if (!metric || chosen || request.y == "metric") return;
  const std::vector<std::string> metrics = values_of(table, *metric);
  if (metrics.size() > 1)
    throw usage_error(
        fmt::format("this table has a row for each of {} metrics, and {} is a column of all of them",
                    metrics.size(), printable(request.y)))
        .in("--y")
        .hint("--y NAME of a metric, or --where metric=NAME");
}

/// One table with the columns of the request found in it.
class Source {
 public:
  Source(const CellTable& table, const FigureRequest& request) : table_(table), request_(request) {
    x_ = require(table, request.x);
    if (const auto own = table.find(request.y)) {
      y_ = *own;
      require_one_metric(table, request);
    } else if (const auto metric = table.find("metric")) {
      metric_ = *metric;
      y_ = require(table, table.find("value") ? "value" : "mean");  // of a scan; of a study's summary
      std::vector<std::string> known = values_of(table, *metric);
      if (std::find(known.begin(), known.end(), request.y) == known.end()) {
        for (const ShortName& s : short_names())
          if (std::find(known.begin(), known.end(), s.metrics.front()) != known.end())
            known.emplace_back(s.name);
        throw unknown_name("metric", request.y, known);
      }
    } else {
      throw unknown_name("column", request.y, table.columns);
    }
    if (!request.site.empty()) site_ = require(table, "site");
    if (!request.band.empty()) band_ = require(table, request.band);
    for (const std::string& column : request.by) by_.push_back(require(table, column));
    for (const auto& [column, value] : request.where) where_.emplace_back(require(table, column), value);
  }

  template <class Take>
  void each(Take take) const {
    for (const auto& row : table_.rows) {
      if (metric_ && row[*metric_] != request_.y) continue;
      const bool depths = request_.x == "depth";
      if (site_ && !is_site(row[*site_], request_.site) && !(depths && is_end(row[*site_], request_.site)))
        continue;
      if (!wanted(row)) continue;
      const double x = number(row[x_]), y = number(row[y_]);
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      take(curve_name(row), x, y, band_ ? number(row[*band_]) : kNone);
    }
  }

 private:
  // A number or a truth alone says nothing: "layers 3", "skip false". An empty cell is left out: a key that
  // has its default, where others have not.
  std::string curve_name(const std::vector<std::string>& row) const {
    std::vector<std::string> name, absent;
    bool columns_named = false;
    for (const size_t column : by_) {
      const std::string &cell = row[column], &title = table_.columns[column];
      const bool mute = as_number(cell) || cell == "true" || cell == "false";
      columns_named = columns_named || mute;
      if (cell.empty())
        absent.push_back(title);
      else
        name.push_back(mute ? title + " " + cell : cell);
    }
    if (name.empty() && !absent.empty()) return fmt::format("no {}", fmt::join(absent, ", no "));
    return fmt::format("{}", fmt::join(name, columns_named ? ", " : " "));
  }

  // Every column asked for has one of the values asked for.
  bool wanted(const std::vector<std::string>& row) const {
    return std::all_of(where_.begin(), where_.end(), [&](const auto& asked) {
      return std::any_of(where_.begin(), where_.end(),
                         [&](const auto& w) { return w.first == asked.first && row[w.first] == w.second; });
    });
  }

  const CellTable& table_;
  const FigureRequest& request_;
  size_t x_ = 0, y_ = 0;
  std::optional<size_t> metric_, site_, band_;
  std::vector<size_t> by_;
  std::vector<std::pair<size_t, std::string>> where_;
};

FigurePoint merged(double x, const std::vector<std::pair<double, double>>& rows) {
  if (rows.size() == 1) {
    const auto& [y, error] = rows.front();
    return {x, y, std::isnan(error) ? y : y - error, std::isnan(error) ? y : y + error};
  }
  std::vector<double> values;
  for (const auto& [y, error] : rows) values.push_back(y);
  const Estimate e = arithmetic_mean(values);
  const bool banded =
      std::none_of(rows.begin(), rows.end(), [](const auto& r) { return std::isnan(r.second); });
  return {x, e.value, banded ? e.value - e.stderr_ : e.value, banded ? e.value + e.stderr_ : e.value};
}

// An axis has numbers: words can only tell curves apart.
void require_numbers(const std::vector<CellTable>& tables, const std::string& column, const char* option) {
  std::string word;
  for (const CellTable& table : tables) {
    const auto at = table.find(column);
    if (!at) return;  // a metric: its values stand in another column
    for (const auto& row : table.rows) {
      if (std::isfinite(number(row[*at]))) return;
      if (word.empty()) word = row[*at];
    }
  }
  throw Error(word.empty()
                  ? fmt::format("the column {} is empty", printable(column))
                  : fmt::format("the column {} has no numbers: {}", printable(column), printable(word)))
      .in(option)
      .hint(fmt::format("--by {} tells curves apart by it", printable(column)));
}

}  // namespace

std::vector<FigureCurve> select_curves(const std::vector<CellTable>& tables, const FigureRequest& request) {
  std::vector<std::string> order;
  std::map<std::string, std::map<double, std::vector<std::pair<double, double>>>> curves;
  for (const CellTable& table : tables)
    Source(table, request).each([&](const std::string& name, double x, double y, double error) {
      if (curves.find(name) == curves.end()) order.push_back(name);
      curves[name][x].emplace_back(y, error);
    });
  if (order.empty()) {
    require_numbers(tables, request.x, "--x");
    require_numbers(tables, request.y, "--y");
    throw Error("no row has these values")
        .in(fmt::format("{}{}", request.y, request.site.empty() ? "" : " at " + printable(request.site)))
        .hint("another --site, --tokens or --where; rankscope report shows what there is");
  }
  std::vector<FigureCurve> out;
  for (const std::string& name : order) {
    out.push_back({name, {}});
    for (const auto& [x, rows] : curves[name]) out.back().points.push_back(merged(x, rows));
  }
  return out;
}

}  // namespace rankscope
