// From a study to its trials.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "studies/coupled.h"
#include "studies/study.h"

namespace rankscope {
namespace {

constexpr size_t kMostTrials = 1000000;

std::string place_of(const Study& study, const std::string& key) {
  const auto line = study.lines.find(key);
  return line == study.lines.end() ? study.place : fmt::format("{}, line {}", study.place, line->second);
}

void refuse_twice(const std::vector<Axis>& overrides) {
  std::map<std::string, std::string> given;
  for (const Axis& axis : overrides) {
    const auto [first, fresh] = given.emplace(axis.names[0], to_text(axis));
    if (!fresh)
      throw usage_error(
          fmt::format("\"{}\" is given twice: {} and {}", axis.names[0], first->second, to_text(axis)))
          .hint(fmt::format("give it once, with all of its values: {}=A,B", axis.names[0]));
  }
}

// An axis as it runs. Where the command line changed entries of a coupled one, `own` is what they were.
struct PlannedAxis {
  Axis axis;
  std::vector<std::vector<Scalar>> own = {};
};

struct Plan {
  Config settings;
  std::vector<PlannedAxis> axes;
  std::set<std::string> coupled;  // keys that were given and vary together with others
  std::vector<std::string> notes;
};

bool has_key(const Axis& axis, const std::string& name) {
  return std::find(axis.names.begin(), axis.names.end(), name) != axis.names.end();
}

void put_on(Plan& plan, Axis axis, const std::vector<Axis>& given, const std::string& study) {
  if (given.empty()) return plan.axes.push_back({std::move(axis)});
  if (axis.names.size() == 1) return plan.axes.push_back({given[0]});
  Entries entries = asked_for(axis, given, study);
  for (const Axis& key : given) plan.coupled.insert(key.names[0]);
  plan.axes.push_back({std::move(entries.axis), std::move(entries.own)});
  plan.notes.insert(plan.notes.end(), entries.notes.begin(), entries.notes.end());
}

Plan plan_of(const Study& study, const std::vector<Axis>& overrides) {
  refuse_twice(overrides);
  Plan plan{study.fixed, {}, {}, {}};
  plan.settings.insert(study.protocol.begin(), study.protocol.end());
  std::vector<Axis> grid = study.grid;
  if (study.seeds > 0) {
    Axis& seeds = grid.emplace_back(Axis{{"seed"}, {}});
    for (int64_t s = 0; s < study.seeds; ++s) seeds.points.push_back({s});
  }
  std::vector<Axis> left = overrides;
  for (Axis& axis : grid) {
    const auto rest = std::stable_partition(
        left.begin(), left.end(), [&](const Axis& given) { return !has_key(axis, given.names[0]); });
    const std::vector<Axis> its(rest, left.end());
    left.erase(rest, left.end());
    put_on(plan, std::move(axis), its, study.name);
  }
  for (Axis& axis : left) {  // of no axis: they turn fastest, as given
    plan.settings.erase(axis.names[0]);
    plan.axes.push_back({std::move(axis)});
  }
  return plan;
}

Axis typed(const Study& study, const std::vector<Key>& keys, Axis axis) {
  for (size_t column = 0; column < axis.names.size(); ++column) {
    const std::string place = place_of(study, axis.names[column]);
    const Key& key = find_key(keys, axis.names[column], place);
    for (std::vector<Scalar>& point : axis.points)
      point[column] = checked(key, std::move(point[column]), place);
  }
  return axis;
}

std::string point_text(const Study& study, const Runner& runner, const Plan& plan, const Config& config) {
  std::vector<std::string> words;
  for (const PlannedAxis& planned : plan.axes)
    for (const std::string& name : planned.axis.names)
      words.push_back(
          fmt::format("{}={}", name, to_text(value_or_default(config, runner.keys, name, study.place))));
  return fmt::format("{}", fmt::join(words, " "));
}

// Why there can be no such trial, with its point by name; nothing where there can.
std::optional<Error> fault_of(const Study& study, const Runner& runner, const Plan& plan,
                              const Config& config) {
  try {
    runner.check(config);
    return {};
  } catch (const Error& fault) {
    return usage_error(fmt::format("{}: {}", point_text(study, runner, plan, config), fault.message()))
        .in(fault.place().empty() ? fmt::format("study {}", study.name) : fault.place())
        .hint(fault.advice());
  }
}

Config base_of(const Study& study, const Runner& runner, const Plan& plan) {
  Config base;
  for (const Key& key : runner.keys) base[key.name] = key.otherwise;
  for (const auto& [name, value] : plan.settings) {
    const std::string place = place_of(study, name);
    base[name] = checked(find_key(runner.keys, name, place), value, place);
  }
  return base;
}

// How many points the grid has, its values as their keys want them.
size_t checked_size(const Study& study, const Runner& runner, Plan& plan) {
  double count = 1;
  for (PlannedAxis& planned : plan.axes) {
    planned.axis = typed(study, runner.keys, std::move(planned.axis));
    planned.own = typed(study, runner.keys, {planned.axis.names, std::move(planned.own)}).points;
    count *= static_cast<double>(planned.axis.points.size());
  }
  if (count > static_cast<double>(kMostTrials))
    throw usage_error(fmt::format("the grid has {:.3g} points, more than the {} allowed", count, kMostTrials))
        .in(study.place);
  return static_cast<size_t>(count);
}

struct GridPoint {
  Config config;
  Config own;  // the same with entries as the study has them
};

GridPoint point_at(const Plan& plan, const Config& base, size_t index) {
  GridPoint out{base, base};
  for (size_t a = plan.axes.size(); a-- > 0;) {  // the last axis turns fastest
    const Axis& axis = plan.axes[a].axis;
    const size_t at = index % axis.points.size();
    index /= axis.points.size();
    const std::vector<Scalar>& own = plan.axes[a].own.empty() ? axis.points[at] : plan.axes[a].own[at];
    for (size_t i = 0; i < axis.names.size(); ++i) {
      out.config[axis.names[i]] = axis.points[at][i];
      out.own[axis.names[i]] = own[i];
    }
  }
  return out;
}

// A figure over a key that no trial has would be empty without a word, and so would be a column, or a row
// that no trial can stand beside.
void require_known_keys(const Study& study, const Runner& runner) {
  const auto require = [&](const std::string& name, const char* where) {
    if (!name.empty()) find_key(runner.keys, name, fmt::format("{}, {}", study.place, where));
  };
  require(study.figure.x, "x of [figure]");
  for (const std::string& name : study.figure.by) require(name, "by of [figure]");
  for (const Published& table : study.published) {
    for (const std::string& name : table.columns)
      require(name, table.printed ? "columns of [published]" : "columns of [reference]");
    for (const Published::Row& row : table.rows)
      for (size_t i = 0; i < row.point.size(); ++i)
        checked(find_key(runner.keys, table.columns[i], study.place), row.point[i],
                fmt::format("{}, line {}", study.place, row.line));
  }
}

// The same for what is read off trials: told before hours of training, not behind them. A study without a
// figure has not asked for the usual y.
void require_known_results(const Study& study, const Runner& runner) {
  if (runner.results.empty()) return;
  const auto require = [&](const std::string& name, const std::string& where) {
    if (!name.empty() &&
        std::find(runner.results.begin(), runner.results.end(), name) == runner.results.end())
      throw unknown_name("result", name, runner.results, fmt::format("rankscope study keys {}", runner.name))
          .in(fmt::format("{}, {}", study.place, where));
  };
  const Figure& figure = study.figure;
  if (!figure.x.empty() || figure.y != Figure().y) require(figure.y, "y of [figure]");
  require(figure.bound, "bound of [figure]");
  for (const std::string& name : figure.lines) require(name, "lines of [figure]");
  for (const Published& table : study.published)
    require(table.metric, fmt::format("metric of [{}]", table.kind()));
}

struct LeftOut {
  Config config;
  Error why;
};

// Entries that cannot have a given value are left out, as long as others have it.
void refuse_lost(const Study& study, const Runner& runner, const Plan& plan, const std::vector<Trial>& all,
                 const std::vector<LeftOut>& left_out) {
  std::set<std::string> ran;
  const auto said = [&](const Config& config, const std::string& key) {
    return key + "=" + to_text(value_or_default(config, runner.keys, key, study.place));
  };
  for (const Trial& trial : all)
    for (const std::string& key : plan.coupled) ran.insert(said(trial.config, key));
  for (const LeftOut& one : left_out)
    for (const std::string& key : plan.coupled)
      if (!ran.contains(said(one.config, key))) throw one.why;
}

std::string note_of(const std::vector<LeftOut>& left_out) {
  const std::string others =
      left_out.size() == 1 ? "" : fmt::format(" (with {} more trials)", left_out.size() - 1);
  return fmt::format("left out{}: {}", others, left_out.front().why.message());
}

}  // namespace

std::vector<Trial> trials(const Study& study, const Runner& runner, const std::vector<Axis>& overrides,
                          std::vector<std::string>* notes) {
  require_known_keys(study, runner);
  require_known_results(study, runner);
  Plan plan = plan_of(study, overrides);
  const Config base = base_of(study, runner, plan);
  const size_t count = checked_size(study, runner, plan);
  std::vector<Trial> out;
  std::vector<LeftOut> left_out;
  std::set<std::string> seen;
  for (size_t index = 0; index < count; ++index) {
    GridPoint point = point_at(plan, base, index);
    // Keys that came later leave its name alone.
    Config config = complete(runner.keys, point.config, study.place);
    if (const std::optional<Error> fault = fault_of(study, runner, plan, config)) {
      const bool as_the_study_has_it = point.config == point.own;
      if (as_the_study_has_it || fault_of(study, runner, plan, complete(runner.keys, point.own, study.place)))
        throw *fault;
      left_out.push_back({std::move(config), *fault});
      continue;
    }
    std::string id = trial_id(runner.name, config);
    if (seen.insert(id).second) out.push_back({std::move(id), std::move(config)});
  }
  refuse_lost(study, runner, plan, out, left_out);
  if (notes != nullptr) *notes = plan.notes;
  if (notes != nullptr && !left_out.empty()) notes->push_back(note_of(left_out));
  return out;
}

std::string spec_text(const Study& study, const std::vector<Axis>& overrides) {
  const Plan plan = plan_of(study, overrides);
  std::vector<std::string> words{study.runner};
  for (const auto& [name, value] : plan.settings) words.push_back(fmt::format("{}={}", name, to_text(value)));
  for (const PlannedAxis& planned : plan.axes) words.push_back(to_text(planned.axis));
  return fmt::format("{}", fmt::join(words, " "));
}

const Runner& find_runner(const std::vector<const Runner*>& runners, const std::string& name,
                          const std::string& place) {
  std::vector<std::string> known;
  for (const Runner* runner : runners) {
    if (runner->name == name) return *runner;
    known.emplace_back(runner->name);
  }
  throw unknown_name("runner", name, known, "rankscope study keys").in(place);
}

}  // namespace rankscope
