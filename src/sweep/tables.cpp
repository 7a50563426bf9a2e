#include "sweep/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/stats.h"
#include "studies/better.h"
#include "theory/certificate.h"

namespace rankscope {
namespace {

double value_of(const StoredTrial& trial, const std::string& metric) {
  const auto found = trial.values.find(metric);
  return found == trial.values.end() ? std::nan("") : found->second;
}

// A standard error of fewer numbers is not to be trusted three times over.
constexpr double kEnoughSequences = 64;

// The result that all seeds of a point measure on one test set: what that set errs by is common to them and
// does not average out. The error of any other result is one of draws that the seed chooses, and is in the
// scatter over seeds already.
constexpr const char* kOnOneTestSet = "test_mse";

// The values that a key has in the study; none where that is not known.
std::vector<std::string> values_of(const Study& study, const std::string& key) {
  std::vector<std::string> out;
  for (const Axis& axis : study.grid)
    for (size_t column = 0; column < axis.names.size(); ++column)
      for (const std::vector<Scalar>& point : axis.points)
        if (axis.names[column] == key &&
            std::find(out.begin(), out.end(), to_text(point[column])) == out.end())
          out.push_back(to_text(point[column]));
  for (const Config* settings : {&study.fixed, &study.protocol, &study.defaults})
    if (const auto found = settings->find(key); out.empty() && found != settings->end())
      out.push_back(to_text(found->second));
  return out;
}

}  // namespace

std::vector<StoredTrial> with_defaults(const Study& study, std::vector<StoredTrial> trials) {
  std::set<std::string> set;
  for (const Config* settings : {&study.fixed, &study.protocol})
    for (const auto& [key, value] : *settings) set.insert(key);
  for (const Axis& axis : study.grid) set.insert(axis.names.begin(), axis.names.end());
  std::vector<Config> configs;
  for (const StoredTrial& trial : trials) {
    configs.push_back(parse_canonical(trial.config));
    for (const auto& [key, value] : configs.back()) set.insert(key);
  }
  for (size_t i = 0; i < trials.size(); ++i) {
    for (const std::string& key : set)
      if (const auto known = study.defaults.find(key); known != study.defaults.end())
        configs[i].emplace(key, known->second);
    trials[i].config = canonical(configs[i]);
  }
  return trials;
}

std::vector<Point> points(const std::vector<StoredTrial>& trials) {
  std::vector<Point> out;
  std::map<std::string, size_t> index;
  for (const StoredTrial& trial : trials) {
    if (trial.state != TrialState::done) continue;
    Config config = parse_canonical(trial.config);
    config.erase("seed");
    const auto [place, fresh] = index.emplace(canonical(config), out.size());
    if (fresh) out.push_back({std::move(config), {}});
    out[place->second].trials.push_back(trial);
  }
  return out;
}

Summary summarise(const Point& point, const std::string& metric) {
  Summary out;
  for (const StoredTrial& trial : point.trials)
    if (const double value = value_of(trial, metric); std::isfinite(value)) out.every.push_back(value);
  const Estimate mean = arithmetic_mean(out.every);
  out.mean = mean.value;
  double of_test = 0;
  if (metric == kOnOneTestSet)
    for (const StoredTrial& trial : point.trials)
      if (const double error = value_of(trial, metric + "_stderr"); std::isfinite(error))
        of_test += error / static_cast<double>(point.trials.size());
  out.stderr_ = std::hypot(mean.stderr_, of_test);
  out.median = median(out.every);
  out.best = std::nan("");
  const Better direction = better(metric);
  if (out.every.empty() || direction == Better::neither) return out;
  const auto [least, most] = std::minmax_element(out.every.begin(), out.every.end());
  out.best = direction == Better::less ? *least : *most;
  return out;
}

std::string settings_text(const Config& config, const std::vector<std::string>& keys) {
  std::vector<std::string> out;
  for (const std::string& key : keys)
    if (const auto found = config.find(key); found != config.end())
      out.push_back(fmt::format("{}={}", key, to_text(found->second)));
  return fmt::format("{}", fmt::join(out, " "));
}

std::vector<std::string> varying(const std::vector<Point>& points) {
  std::map<std::string, std::set<std::string>> seen;
  std::map<std::string, size_t> said;  // a key that came later is not there at its default
  for (const Point& point : points)
    for (const auto& [name, value] : point.config) {
      seen[name].insert(to_text(value));
      ++said[name];
    }
  std::vector<std::string> out;
  for (const auto& [name, values] : seen)
    if (values.size() > 1 || said[name] < points.size()) out.push_back(name);
  return out;
}

bool has_setting(const Study& study, const Config& config, const std::string& key, const Scalar& value) {
  // A key that came later is not there at its default.
  for (const Config* settings : {&config, &study.defaults})
    if (const auto ours = settings->find(key); ours != settings->end())
      return to_text(ours->second) == to_text(value);
  return false;
}

bool has_fixed_settings(const Study& study, const Config& config) {
  return std::all_of(study.fixed.begin(), study.fixed.end(), [&](const auto& entry) {
    return has_setting(study, config, entry.first, entry.second);
  });
}

std::optional<double> published_value(const Study& study, const Published& table, const Config& config) {
  if (!has_fixed_settings(study, config)) return {};
  for (const Published::Row& row : table.rows) {
    bool same = true;
    for (size_t i = 0; i < table.columns.size() && same; ++i)
      same = has_setting(study, config, table.columns[i], row.point[i]);
    if (same) return row.value;
  }
  return {};
}

std::vector<std::string> changed_settings(const Study& study, const Published& table, const Config& config) {
  std::vector<std::string> changed;
  for (const auto& [key, ours] : config) {
    if (std::find(table.columns.begin(), table.columns.end(), key) != table.columns.end()) continue;
    const std::vector<std::string> has = values_of(study, key);
    if (!has.empty() && std::find(has.begin(), has.end(), to_text(ours)) == has.end())
      changed.push_back(fmt::format("{}={} (the study has {})", key, to_text(ours), fmt::join(has, ", ")));
  }
  return changed;
}

namespace {

// How a trial stands, by its error and by the one it started with.
TrialStanding standing_of(const StoredTrial& trial, const Config& config) {
  Certificate known;
  if (const double bound = value_of(trial, "lower_bound"); std::isfinite(bound)) known.lower_bound = bound;
  const double floor = value_of(trial, "no_selection_floor");
  known.no_selection_floor = std::isfinite(floor) ? floor : std::numeric_limits<double>::infinity();
  double scatter = value_of(trial, "test_mse_stderr");
  if (number_or_nan(config, "test_sequences") < kEnoughSequences)
    scatter = std::numeric_limits<double>::infinity();
  const TrialStanding standing = judge(value_of(trial, "test_mse"), scatter, known).standing;
  if (standing != TrialStanding::answers_zero) return standing;
  // Training that began with answers near zero has killed nothing: it may not have got anywhere yet.
  const TrialStanding start = judge(value_of(trial, "start_mse"), scatter, known).standing;
  return start == TrialStanding::answers_zero ? TrialStanding::nearly_zero : standing;
}

}  // namespace

std::string judgement(const Point& point) {
  std::map<TrialStanding, size_t> count;
  for (const StoredTrial& trial : point.trials) ++count[standing_of(trial, point.config)];
  if (count[TrialStanding::below_bound] > 0) return "fault of the experiment";
  const size_t all = point.trials.size(), dead = count[TrialStanding::answers_zero],
               nearly = count[TrialStanding::nearly_zero];
  if (all == 0) return "";
  if (dead == all) return "training died: answers zero";
  if (dead > 0) return fmt::format("training died in {} of {}", dead, all);  // then a mean says little
  if (count[TrialStanding::worse] == all) return "worse than answering zero";
  if (nearly == all) return "about as good as answering zero";
  return count[TrialStanding::no_selection] + nearly == all ? "no better than no selection" : "";
}

std::vector<std::string> precision_notes(const std::vector<Point>& points) {
  struct Group {
    int64_t trials = 0;
    std::vector<double> rounding;
  };
  std::map<std::string, Group> groups;
  for (const Point& point : points)
    for (const StoredTrial& trial : point.trials) {
      const bool no_choice = trial.precision == "fp32" && !trial.device.starts_with("cuda");
      if (trial.precision.empty() || no_choice) continue;
      Group& group = groups[trial.precision];
      ++group.trials;
      if (const double r = value_of(trial, "tf32_rounding"); std::isfinite(r)) group.rounding.push_back(r);
    }
  std::vector<std::string> out;
  for (const auto& [precision, group] : groups) {
    std::string note =
        fmt::format("trained in {}: {} trial{}", precision, group.trials, group.trials == 1 ? "" : "s");
    if (!group.rounding.empty()) {
      const auto [least, most] = std::minmax_element(group.rounding.begin(), group.rounding.end());
      const std::string from = fmt::format("{:.2g}", *least), to = fmt::format("{:.2g}", *most);
      note += fmt::format("; TF32 moves a first gradient by {} of what another batch does",
                          from == to ? from : from + " to " + to);
    }
    out.push_back(note);
  }
  return out;
}

}  // namespace rankscope
