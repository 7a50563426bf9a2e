#include "cli/plot_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "base/table.h"
#include "report/names.h"
#include "report/text.h"
#include "verdict/verdict.h"

namespace rankscope {
namespace {

/// The rows of one metric; none where the table has its numbers in columns.
template <class Fits>
bool any_row(const CellTable& table, std::string_view metric, Fits fits) {
  const auto column = table.find("metric");
  return column && std::any_of(table.rows.begin(), table.rows.end(),
                               [&](const auto& row) { return row[*column] == metric && fits(row); });
}

bool has_metric(const CellTable& table, std::string_view metric) {
  return any_row(table, metric, [](const auto&) { return true; });
}

bool has_numbers(const CellTable& table, std::string_view metric, std::string_view column) {
  const auto at = table.find(column);
  return at && any_row(table, metric, [&](const auto& row) { return as_number(row[*at]).has_value(); });
}

bool has_tokens(const CellTable& table, std::string_view metric, std::string_view rule) {
  const auto at = table.find("tokens");
  return at && any_row(table, metric, [&](const auto& row) { return row[*at] == rule; });
}

bool has_site(const CellTable& table, std::string_view end) {
  const auto column = table.find("site");
  return column && std::any_of(table.rows.begin(), table.rows.end(),
                               [&](const auto& row) { return row[*column].ends_with(end); });
}

// 1 or 0 for each head: their mean is the share of heads that reach the limit.
void count_by(CellTable& table, std::string_view metric, double limit) {
  const auto value = table.find("value"), name = table.find("metric");
  if (!value || !name)
    throw Error(fmt::format("heads are counted by their {}, and this table has no column \"value\"", metric))
        .hint(fmt::format("--y {} draws what it has", metric));
  for (auto& row : table.rows)
    if (const auto number = as_number(row[*value]); number && row[*name] == metric)
      row[*value] = *number >= limit ? "1" : "0";
}

// The metric that a heading means in every table that measures it; none where a table has the name itself.
std::string_view metric_of(const ShortName& known, const std::vector<CellTable>& tables) {
  std::vector<const CellTable*> measure;
  for (const CellTable& table : tables) {
    if (table.find(known.name) || has_metric(table, known.name)) return {};
    if (std::ranges::any_of(known.metrics, [&](std::string_view m) { return has_metric(table, m); }))
      measure.push_back(&table);
  }
  if (measure.empty()) return {};
  for (const std::string_view metric : known.metrics)
    if (std::ranges::all_of(measure, [&](const CellTable* t) { return has_metric(*t, metric); }))
      return metric;
  throw Error(fmt::format("these tables measure {} by different metrics", known.name))
      .hint(fmt::format("--y NAME, one of {}", fmt::join(known.metrics, ", ")));
}

// "residual" as the table of `scan` means it: the metric, the place and the tokens that it was read from.
void spell_out_heading(std::vector<CellTable>& tables, NamedFigure& f) {
  const ShortName* known = short_name(f.request.y);
  if (known == nullptr) return;
  const std::string_view metric = metric_of(*known, tables);
  if (metric.empty()) return;
  if (!known->threshold.empty()) {
    for (CellTable& table : tables)
      if (has_metric(table, metric)) count_by(table, metric, Thresholds()[known->threshold]);
    if (f.style.y_label.empty()) f.style.y_label = fmt::format("{} (share of heads)", f.request.y);
  }
  f.request.y = metric;
  if (known->where == ShortName::Where::anywhere) return;
  const auto any_site = [&](std::string_view end) {
    return std::ranges::any_of(tables, [&](const CellTable& t) { return has_site(t, end); });
  };
  if (known->where == ShortName::Where::attention) {
    if (f.request.site.empty())
      f.request.site = any_site(".attn.hook_mixer") ? "attn.hook_mixer" : "attn.hook_pattern";
    return;
  }
  const bool judged = known->where == ShortName::Where::judged;
  if (f.request.site.empty())
    f.request.site = judged && any_site(".ln1.hook_normalized") ? "ln1.hook_normalized" : "resid_post";
  if (judged && f.tokens.empty() &&
      std::ranges::any_of(tables, [&](const CellTable& t) { return has_tokens(t, metric, "content"); }))
    f.tokens = "content";
}

// "head_zero_passes is one number and no curve: 30.3", with the variants where there are several.
Error no_curve(const CellTable& table, const std::string& metric) {
  const size_t name = *table.find("metric");
  const auto value = table.find("value"), variant = table.find("variant");
  std::vector<std::string> names, numbers;
  for (const auto& row : table.rows)
    if (row[name] == metric && value && numbers.size() < 6) {
      names.push_back(variant ? terminal_text(row[*variant]) : "");
      numbers.push_back(number_text(as_number(row[*value]).value_or(kNone)));
    }
  names = short_names(names, kVariantWidth);
  for (size_t i = 0; i < names.size(); ++i) numbers[i] = fmt::format("{} {}", names[i], numbers[i]);
  return Error(fmt::format("{} is no curve: it has neither a depth nor a layer", metric))
      .in(fmt::format("{}", fmt::join(numbers, ", ")))
      .hint("rankscope report shows it beside the rest");
}

// Some of the names, those nearest to `name` first; in their own order where there is none.
std::string some_of(const std::vector<std::string>& known, const std::string& name) {
  constexpr size_t kNamed = 12;
  std::vector<std::string> shown;
  const size_t count = std::min(known.size(), kNamed);
  for (const std::string& near :
       name.empty() ? std::vector(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(count))
                    : nearest(name, known, kNamed))
    shown.push_back(printable(near, 40));
  return fmt::format("{}{}", fmt::join(shown, ", "), known.size() > kNamed ? ", ..." : "");
}

// Columns in which every cell that is filled is a number.
std::vector<std::string> numbered(const CellTable& table) {
  std::vector<std::string> out;
  for (size_t c = 0; c < table.columns.size(); ++c)
    if (std::all_of(table.rows.begin(), table.rows.end(),
                    [&](const auto& row) { return row[c].empty() || as_number(row[c]); }))
      out.push_back(table.columns[c]);
  return out;
}

// What can be drawn of a table: headings of scan's table and metrics where they stand in rows, else columns.
std::vector<std::string> drawable(const CellTable& table) {
  const auto metric = table.find("metric");
  if (!metric) return numbered(table);
  std::set<std::string> names;
  for (const auto& row : table.rows) names.insert(row[*metric]);
  std::vector<std::string> out;
  for (const ShortName& s : short_names())
    if (names.contains(std::string(s.metrics.front()))) out.emplace_back(s.name);
  out.insert(out.end(), names.begin(), names.end());
  return out;
}

// What --y and --x must name, and what a table has for them.
void require_names(const std::vector<CellTable>& tables, const FigureRequest& request) {
  for (const CellTable& table : tables) {
    if (request.y.empty())
      throw usage_error("--y is required: what to draw")
          .hint("--y NAME, one of " + some_of(drawable(table), ""));
    if (!table.find("metric") && !table.find(request.y))
      throw usage_error(fmt::format("there is no column \"{}\"", printable(request.y)))
          .in("--y")
          .hint(some_of(table.columns, request.y));
    if (request.x.empty() && !table.find("depth"))
      throw usage_error("--x is required: this table has no depth")
          .hint("--x NAME, one of " + some_of(numbered(table), ""));
  }
}

}  // namespace

void spell_out(std::vector<CellTable>& tables, NamedFigure& f) {
  require_names(tables, f.request);
  spell_out_heading(tables, f);
  const std::string& metric = f.request.y;
  const auto any = [&](auto has) { return std::any_of(tables.begin(), tables.end(), has); };
  const auto with_numbers = [&](std::string_view column) {
    return any([&](const CellTable& t) { return has_numbers(t, metric, column); });
  };
  if (f.request.x.empty()) {
    f.request.x = !with_numbers("depth") && with_numbers("layer") ? "layer" : "depth";
    const auto found =
        std::find_if(tables.begin(), tables.end(), [&](const CellTable& t) { return has_metric(t, metric); });
    if (found != tables.end() && !with_numbers(f.request.x)) throw no_curve(*found, metric);
  }
  // One kind of tokens a figure: papers plot all of them.
  if (f.tokens.empty() && any([&](const CellTable& t) { return has_metric(t, metric); }))
    f.tokens = any([&](const CellTable& t) { return has_tokens(t, metric, "all"); }) ? "all" : "content";
  if (!f.tokens.empty() && tables.front().find("tokens")) f.request.where.emplace_back("tokens", f.tokens);
}

}  // namespace rankscope
