#include "sweep/gathered.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "report/study_results.h"
#include "studies/overrides.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

struct Source {
  Study study;
  std::vector<StoredTrial> trials;
};

// An exported trials.csv, with the names of its columns that are settings.
struct TrialRows {
  const CellTable& table;
  const std::vector<std::string>& keys;
  const Runner& runner;
  std::string study, place;

  const std::string& cell(const std::vector<std::string>& row, const std::string& column) const {
    static const std::string none;
    const auto at = table.find(column);
    return at ? row[*at] : none;
  }

  Config config(const std::vector<std::string>& row) const {
    Config out;
    for (const std::string& name : keys) {
      const Key& key = find_key(runner.keys, name, place);
      const std::string& text = cell(row, name);
      const bool may_be_empty = std::holds_alternative<std::string>(key.otherwise) && !key.later;
      if (text.empty() && !may_be_empty) continue;
      const Scalar value = parse_value(text, key, place);
      if (!key.later || value != key.otherwise) out[name] = value;  // as in a trial's name
    }
    return out;
  }

  std::map<std::string, double> results(const std::vector<std::string>& row) const {
    static const std::set<std::string> kAbout{"id",        "study",    "state",        "device",
                                              "precision", "attempts", "wall_seconds", "reason"};
    std::map<std::string, double> out;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string& name = table.columns[c];
      if (kAbout.contains(name) || std::find(keys.begin(), keys.end(), name) != keys.end() || row[c].empty())
        continue;
      const std::optional<double> value = as_number(row[c]);
      if (!value || !std::isfinite(*value))
        throw Error(fmt::format("{} of the row {} is no number: {}", printable(name),
                                printable(cell(row, "id")), printable(row[c])))
            .in(place);
      out[name] = *value;
    }
    return out;
  }

  StoredTrial trial(const std::vector<std::string>& row) const {
    StoredTrial out;
    const Config settings = config(row);
    out.id = cell(row, "id");
    if (const std::string named = trial_id(runner.name, settings); named != out.id)
      throw Error(fmt::format("the row {} has the settings of the trial {}", printable(out.id), named))
          .in(place)
          .hint("export the store again: a row that was changed is not taken");
    out.study = cell(row, "study");
    if (out.study != study)
      throw Error(fmt::format("the row {} is of the study {}, not {}", printable(out.id),
                              printable(out.study), printable(study)))
          .in(place);
    out.runner = runner.name;
    out.config = canonical(settings);
    out.state = trial_state(cell(row, "state"), place);
    out.device = cell(row, "device");
    out.precision = cell(row, "precision");
    out.reason = cell(row, "reason");
    const double attempts = as_number(cell(row, "attempts")).value_or(0);
    out.attempts = attempts >= 0 && attempts < 1e9 ? static_cast<int64_t>(attempts) : 0;
    out.seconds = as_number(cell(row, "wall_seconds")).value_or(0);
    out.values = results(row);
    return out;
  }
};

Study builtin_study(const std::string& name, const std::string& place) {
  const std::vector<std::string> known = builtin_studies();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw Error(
        fmt::format("these are tables of the study \"{}\", which is not a built-in one", printable(name)))
        .in(place)
        .hint("give the folder of its store in their place: tables do not say what the study is");
  return load_study(name);
}

Source read_tables(const fs::path& folder, const std::vector<const Runner*>& runners) {
  const std::string about = (folder / "study.json").string();
  Source out{builtin_study(JsonObject(read_json(about, 64 << 20), about).string("name"), about), {}};
  const Runner& runner = find_runner(runners, out.study.runner, about);
  for (const Key& key : runner.keys) out.study.defaults[key.name] = key.otherwise;
  const StudyResults results = read_study(folder);
  const TrialRows rows{results.trials, results.keys, runner, out.study.name,
                       (folder / "trials.csv").string()};
  for (const auto& row : results.trials.rows) out.trials.push_back(rows.trial(row));
  return out;
}

Source read_source(const fs::path& folder, const std::vector<const Runner*>& runners) {
  if (!has_store(folder) && is_study_folder(folder)) return read_tables(folder, runners);
  const Store store = Store::look_at(folder);  // says what is wrong where there is none
  return {store.study(), store.trials()};
}

}  // namespace

bool has_store(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "study.db", ignored);
}

namespace {

// What a study is beside its trials: what is published, and what the figure draws.
bool same_definition(const Study& a, const Study& b) {
  const auto same_rows = [](const Published& x, const Published& y) {
    const auto equal = [](const Published::Row& r, const Published::Row& s) {
      return r.point == s.point && (r.value == s.value || (std::isnan(r.value) && std::isnan(s.value)));
    };
    return x.metric == y.metric && x.statistic == y.statistic && x.columns == y.columns &&
           std::equal(x.rows.begin(), x.rows.end(), y.rows.begin(), y.rows.end(), equal);
  };
  return a.figure.x == b.figure.x && a.figure.y == b.figure.y && a.fixed == b.fixed &&
         std::equal(a.published.begin(), a.published.end(), b.published.begin(), b.published.end(),
                    same_rows);
}

// The first result in which two rows of a trial differ, times aside: the same trial on the same machine gives
// the same numbers, and on another nearly the same.
std::optional<std::string> contradiction(const StoredTrial& a, const StoredTrial& b) {
  if (a.state != TrialState::done || b.state != TrialState::done) return {};
  for (const auto& [name, value] : a.values) {
    const auto other = b.values.find(name);
    if (other == b.values.end() || value == other->second || name == "seconds" || name.ends_with("_ms"))
      continue;
    return fmt::format("{} of {} is {} and {}", name, a.id, value, other->second);
  }
  return {};
}

}  // namespace

Gathered gather(const std::vector<fs::path>& folders, const std::vector<const Runner*>& runners) {
  Gathered out;
  std::map<std::string, size_t> place;  // of a trial
  size_t contradicting = 0;
  std::string first;
  for (const fs::path& folder : folders) {
    Source source = read_source(folder, runners);
    if (out.study.name.empty())
      out.study = std::move(source.study);
    else if (out.study.name != source.study.name)
      throw usage_error(
          fmt::format("this folder holds the study {}, not {}", source.study.name, out.study.name))
          .in(folder.string())
          .hint("folders of one study");
    else if (!same_definition(out.study, source.study))
      out.notes.push_back(
          fmt::format("{} holds another version of the study: what stands beside the trials is "
                      "the first folder's",
                      printable(folder.string(), 400)));
    for (StoredTrial& trial : source.trials) {
      const auto [at, fresh] = place.emplace(trial.id, out.trials.size());
      if (fresh) {
        out.trials.push_back(std::move(trial));
        continue;
      }
      ++out.repeated;
      StoredTrial& there = out.trials[at->second];
      if (const std::optional<std::string> differs = contradiction(there, trial)) {
        ++contradicting;
        if (first.empty()) first = *differs;
      }
      if (there.state != TrialState::done && trial.state == TrialState::done) there = std::move(trial);
    }
  }
  if (contradicting > 0)
    out.notes.push_back(
        fmt::format("{} of {} repeated rows have other results: {}", contradicting, out.repeated, first));
  return out;
}

}  // namespace rankscope
