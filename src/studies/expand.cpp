// From a study to its trials.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "studies/study.h"

namespace rankscope {
namespace {

constexpr size_t kMostTrials = 1000000;

std::string place_of(const Study& study, const std::string& key) {
  const auto line = study.lines.find(key);
  return line == study.lines.end() ? study.place : fmt::format("{}, line {}", study.place, line->second);
}

bool same_value(const Scalar& a, const Scalar& b) { return to_text(a) == to_text(b); }

// The points of a coupled axis that have one of the values, and the values that no point has.
Axis picked(const Axis& coupled, size_t column, const Axis& override_axis, Axis& left_over) {
  Axis out{coupled.names, {}};
  for (const std::vector<Scalar>& value : override_axis.points) {
    const size_t before = out.points.size();
    for (const std::vector<Scalar>& point : coupled.points)
      if (same_value(point[column], value[0])) out.points.push_back(point);
    if (out.points.size() == before) left_over.points.push_back(value);
  }
  return out;
}

// One grid for the points of coupled axes, one for each override that left such an axis: their union is run.
struct Plan {
  Config settings;
  std::vector<Axis> axes;
};

std::vector<Plan> plans(const Study& study, const std::vector<Axis>& overrides) {
  std::vector<Plan> all{{study.fixed, study.grid}};
  all[0].settings.insert(study.protocol.begin(), study.protocol.end());
  if (study.seeds > 0) {
    Axis seeds{{"seed"}, {}};
    for (int64_t s = 0; s < study.seeds; ++s) seeds.points.push_back({s});
    all[0].axes.push_back(std::move(seeds));
  }
  for (const Axis& given : overrides) {
    const std::string& name = given.names[0];
    std::vector<Plan> next;
    for (Plan& plan : all) {
      const auto axis = std::find_if(plan.axes.begin(), plan.axes.end(), [&](const Axis& a) {
        return std::find(a.names.begin(), a.names.end(), name) != a.names.end();
      });
      plan.settings.erase(name);
      if (axis == plan.axes.end()) {
        plan.axes.push_back(given);
        next.push_back(std::move(plan));
      } else if (axis->names.size() == 1) {
        *axis = given;
        next.push_back(std::move(plan));
      } else {
        const auto column = std::find(axis->names.begin(), axis->names.end(), name) - axis->names.begin();
        Axis alone{{name}, {}};
        Axis coupled = picked(*axis, static_cast<size_t>(column), given, alone);
        Plan apart = plan;
        apart.axes[static_cast<size_t>(axis - plan.axes.begin())] = alone;
        *axis = std::move(coupled);
        if (!axis->points.empty()) next.push_back(std::move(plan));
        if (!alone.points.empty()) next.push_back(std::move(apart));
      }
    }
    all = std::move(next);
  }
  return all;
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

std::string point_text(const Study& study, const Runner& runner, const std::vector<Axis>& axes,
                       const Config& config) {
  std::vector<std::string> words;
  for (const Axis& axis : axes)
    for (const std::string& name : axis.names)
      words.push_back(
          fmt::format("{}={}", name, to_text(value_or_default(config, runner.keys, name, study.place))));
  return fmt::format("{}", fmt::join(words, " "));
}

void refuse_impossible(const Study& study, const Runner& runner, const std::vector<Axis>& axes,
                       const Config& config) {
  try {
    runner.check(config);
  } catch (const Error& fault) {
    throw usage_error(fmt::format("{}: {}", point_text(study, runner, axes, config), fault.message()))
        .in(fault.place().empty() ? fmt::format("study {}", study.name) : fault.place())
        .hint(fault.advice());
  }
}

}  // namespace

std::vector<Trial> trials(const Study& study, const Runner& runner, const std::vector<Axis>& overrides) {
  std::vector<Trial> out;
  std::set<std::string> seen;
  for (Plan& plan : plans(study, overrides)) {
    Config base;
    for (const Key& key : runner.keys) base[key.name] = key.otherwise;
    for (const auto& [name, value] : plan.settings) {
      const std::string place = place_of(study, name);
      base[name] = checked(find_key(runner.keys, name, place), value, place);
    }
    double count = 1;
    for (Axis& axis : plan.axes) {
      axis = typed(study, runner.keys, std::move(axis));
      count *= static_cast<double>(axis.points.size());
    }
    if (count > static_cast<double>(kMostTrials))
      throw usage_error(
          fmt::format("the grid has {:.3g} points, more than the {} allowed", count, kMostTrials))
          .in(study.place);
    for (size_t index = 0; index < static_cast<size_t>(count); ++index) {
      Config config = base;
      size_t rest = index;
      for (size_t a = plan.axes.size(); a-- > 0;) {  // the last axis turns fastest
        const Axis& axis = plan.axes[a];
        const std::vector<Scalar>& point = axis.points[rest % axis.points.size()];
        rest /= axis.points.size();
        for (size_t i = 0; i < axis.names.size(); ++i) config[axis.names[i]] = point[i];
      }
      config = complete(runner.keys, config, study.place);  // keys that came later leave its name alone
      refuse_impossible(study, runner, plan.axes, config);
      std::string id = trial_id(runner.name, config);
      if (seen.insert(id).second) out.push_back({std::move(id), std::move(config)});
    }
  }
  return out;
}

std::string spec_text(const Study& study, const std::vector<Axis>& overrides) {
  std::vector<std::string> lines;
  for (const Plan& plan : plans(study, overrides)) {
    std::vector<std::string> words{study.runner};
    for (const auto& [name, value] : plan.settings)
      words.push_back(fmt::format("{}={}", name, to_text(value)));
    for (const Axis& axis : plan.axes) words.push_back(to_text(axis));
    lines.push_back(fmt::format("{}", fmt::join(words, " ")));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

const Runner& find_runner(const std::vector<const Runner*>& runners, const std::string& name,
                          const std::string& place) {
  std::vector<std::string> known;
  for (const Runner* runner : runners) {
    if (runner->name == name) return *runner;
    known.emplace_back(runner->name);
  }
  throw unknown_name("runner", name, known).in(place);
}

}  // namespace rankscope
