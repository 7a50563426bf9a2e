// Tables of a study as files that pandas and R read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/csv.h"
#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "base/version.h"
#include "report/write.h"
#include "sweep/gathered.h"
#include "sweep/tables.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

// The shortest text that reads back the same; what is not a number is an empty cell.
std::string cell(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

std::string value_or_empty(const Config& config, const std::string& key) {
  const auto found = config.find(key);
  return found == config.end() ? "" : to_text(found->second);
}

std::vector<std::string> result_names(const std::vector<StoredTrial>& trials) {
  std::set<std::string> names;
  for (const StoredTrial& trial : trials)
    for (const auto& [name, value] : trial.values) names.insert(name);
  return {names.begin(), names.end()};
}

std::set<std::string> keys_of(const std::vector<StoredTrial>& trials) {
  std::set<std::string> keys;
  for (const StoredTrial& trial : trials)
    for (const auto& [name, value] : parse_canonical(trial.config)) keys.insert(name);
  return keys;
}

CellTable trials_table(const std::vector<StoredTrial>& trials) {
  const std::set<std::string> keys = keys_of(trials);
  const std::vector<std::string> results = result_names(trials);
  std::vector<std::string> header{"id",        "study",    "state",        "device",
                                  "precision", "attempts", "wall_seconds", "reason"};
  header.insert(header.end(), keys.begin(), keys.end());
  header.insert(header.end(), results.begin(), results.end());
  CellTable out{std::move(header), {}};
  for (const StoredTrial& t : trials) {
    const Config config = parse_canonical(t.config);
    std::vector<std::string> row{t.id,
                                 t.study,
                                 to_text(t.state),
                                 t.device,
                                 t.precision,
                                 fmt::format("{}", t.attempts),
                                 cell(t.seconds),
                                 t.reason};
    for (const std::string& key : keys) row.push_back(value_or_empty(config, key));
    for (const std::string& name : results)
      row.push_back(t.values.contains(name) ? cell(t.values.at(name)) : "");
    out.rows.push_back(std::move(row));
  }
  return out;
}

std::string trials_jsonl(const std::vector<StoredTrial>& trials) {
  std::string out;
  for (const StoredTrial& t : trials) {
    Json values = Json::object();
    for (const auto& [name, value] : t.values)
      values[name] = std::isfinite(value) ? Json(value) : Json(nullptr);
    out += Json{{"id", t.id},
                {"study", t.study},
                {"state", to_text(t.state)},
                {"device", t.device},
                {"precision", t.precision.empty() ? Json(nullptr) : Json(t.precision)},
                {"attempts", t.attempts},
                {"wall_seconds", t.seconds},
                {"reason", t.reason},
                {"config", Json::parse(t.config)},
                {"results", values}}
               .dump(-1, ' ', false, Json::error_handler_t::replace) +
           "\n";
  }
  return out;
}

CellTable summary_table(const std::vector<Point>& all, const std::vector<StoredTrial>& trials) {
  const std::vector<std::string> keys = varying(all);
  std::vector<std::string> header = keys;
  for (const char* name : {"metric", "seeds", "mean", "median", "best", "stderr"}) header.emplace_back(name);
  CellTable out{std::move(header), {}};
  for (const Point& point : all)
    for (const std::string& metric : result_names(trials)) {
      const Summary s = summarise(point, metric);
      if (s.every.empty()) continue;
      std::vector<std::string> row;
      for (const std::string& key : keys) row.push_back(value_or_empty(point.config, key));
      for (const std::string& text : {metric, fmt::format("{}", s.every.size()), cell(s.mean), cell(s.median),
                                      cell(s.best), cell(s.stderr_)})
        row.push_back(text);
      out.rows.push_back(std::move(row));
    }
  return out;
}

// Every published and every reference value (`provenance` says which), also those we have nothing beside yet;
// a value beside each of our points that match, with what was `changed` of the study.
CellTable published_table(const Study& study, const std::vector<Point>& all) {
  std::vector<std::string> keys = varying(all);
  for (const Published& table : study.published)
    for (const std::string& column : table.columns)
      if (std::find(keys.begin(), keys.end(), column) == keys.end()) keys.push_back(column);
  std::vector<std::string> header = keys;
  for (const char* name : {"metric", "statistic", "published", "ours_best", "ours_mean", "seeds", "ratio",
                           "budget", "source", "provenance", "changed"})
    header.emplace_back(name);
  CellTable out{std::move(header), {}};
  for (const Published& table : study.published)
    for (const Published::Row& published : table.rows) {
      Config wanted;
      for (size_t i = 0; i < table.columns.size(); ++i) wanted[table.columns[i]] = published.point[i];
      const auto write = [&](const Config& config, const Summary& ours) {
        std::vector<std::string> row;
        for (const std::string& key : keys) row.push_back(value_or_empty(config, key));
        const double compared = table.statistic == "mean" ? ours.mean : ours.best;
        for (const std::string& text :
             {table.metric, table.statistic, cell(published.value), cell(ours.best), cell(ours.mean),
              fmt::format("{}", ours.every.size()), cell(compared / published.value), table.budget,
              table.source, std::string(table.kind()),
              fmt::format("{}", fmt::join(changed_settings(study, table, config), ", "))})
          row.push_back(text);
        out.rows.push_back(std::move(row));
      };
      bool any = false;
      const Published only{table.metric, table.statistic, {}, {}, table.columns, {published}};
      for (const Point& point : all)
        if (published_value(study, only, point.config)) {
          write(point.config, summarise(point, table.metric));
          any = true;
        }
      const double none = std::nan("");
      if (!any) write(wanted, {{}, none, none, none, none});
    }
  return out;
}

Json about(const Study& study, const std::vector<StoredTrial>& trials) {
  const auto in = [&](TrialState state) {
    return std::count_if(trials.begin(), trials.end(),
                         [&](const StoredTrial& t) { return t.state == state; });
  };
  Json published = Json::array();
  for (const Published& t : study.published)
    published.push_back({{"kind", t.kind()},
                         {"metric", t.metric},
                         {"statistic", t.statistic},
                         {"budget", t.budget},
                         {"source", t.source},
                         {"columns", t.columns},
                         {"values", t.rows.size()}});
  const Figure& f = study.figure;
  return Json{{"schema", kResultSchema},
              {"version", version()},
              {"name", study.name},
              {"title", study.title},
              {"question", study.question},
              {"paper", study.paper},
              {"runner", study.runner},
              {"spec", spec_text(study, {})},
              {"figure",
               {{"x", f.x},
                {"y", f.y},
                {"by", f.by},
                {"log_x", f.log_x},
                {"log_y", f.log_y},
                {"bound", f.bound},
                {"lines", f.lines}}},
              {"keys", keys_of(trials)},
              {"published", published},
              {"trials",
               {{"pending", in(TrialState::pending)},
                {"running", in(TrialState::running)},
                {"done", in(TrialState::done)},
                {"failed", in(TrialState::failed)}}}};
}

// `trials` with their defaults.
StudyTables tables_of(const Study& study, const std::vector<StoredTrial>& trials) {
  return {about(study, trials), trials_table(trials),
          study.published.empty() ? CellTable{} : published_table(study, points(trials))};
}

bool is_our_table(const fs::path& file) {
  try {
    const CellTable table = read_csv(file);
    return table.find("id") && table.find("state");
  } catch (const Error&) {
    return false;
  }
}

bool is_our_list(const fs::path& file) {
  std::ifstream in(file);
  std::string start(16, '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start.starts_with("{\"attempts\":");
}

bool is_our_study(const fs::path& file) {
  try {
    const Json about = read_json(file, 64 << 20);
    return about.is_object() && about.contains("runner") && about.contains("figure");
  } catch (const Error&) {
    return false;
  }
}

// Tables are written over tables of ours, the trials first and study.json last: one of them tells of the
// others.
void require_our_tables(const fs::path& folder) {
  struct Known {
    const char* name;
    bool (*ours)(const fs::path&);
  };
  constexpr Known kTelling[] = {
      {"trials.csv", is_our_table}, {"trials.jsonl", is_our_list}, {"study.json", is_our_study}};
  const auto refuse = [&](const std::string& name) {
    return usage_error(fmt::format("the {} in this folder is not one of rankscope's", name))
        .in("--to " + folder.string())
        .hint("choose another --to");
  };
  std::error_code ignored;
  bool ours = false;
  for (const Known& known : kTelling)
    if (fs::exists(folder / known.name, ignored)) {
      if (!fs::is_regular_file(folder / known.name, ignored) || !known.ours(folder / known.name))
        throw refuse(known.name);
      ours = true;
    }
  for (const char* name : {"summary.csv", "published.csv"})
    if (!ours && fs::exists(folder / name, ignored)) throw refuse(name);
}

// A row of an export that is there already; done where any of the files there says so.
struct KeptTrial {
  std::string study;
  bool done = false;
};
using KeptTrials = std::map<std::string, KeptTrial>;  // by id

void read_kept_table(const fs::path& file, KeptTrials& out) {
  const CellTable table = read_csv(file);
  const auto id = table.find("id"), state = table.find("state"), study = table.find("study");
  for (const auto& row : table.rows) {
    KeptTrial& trial = out[row[*id]];
    if (study) trial.study = row[*study];
    trial.done = trial.done || row[*state] == "done";
  }
}

void read_kept_list(const fs::path& file, KeptTrials& out) {
  std::istringstream lines(read_file(file, uint64_t{1} << 30));
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json row = parse_json(line, fmt::format("{}, line {}", file.string(), ++number));
    const JsonObject said(row, file.string());
    KeptTrial& trial = out[said.string("id")];
    trial.study = said.string("study", "");
    trial.done = trial.done || said.string("state", "") == "done";
  }
}

// Who gives a folder for tables does not expect that others go: another study's, and rows of this one that
// would not be written again, or not be done any more.
void require_nothing_lost(const Study& study, const std::vector<StoredTrial>& trials,
                          const fs::path& folder) {
  const auto refuse = [&](const std::string& what) {
    return usage_error(what)
        .in("--to " + folder.string())
        .hint("another --to, or --force to replace what is there");
  };
  std::map<std::string, bool> written;  // whether it is done, by id
  for (const StoredTrial& trial : trials) written[trial.id] = trial.state == TrialState::done;
  std::error_code ignored;
  KeptTrials kept;
  if (fs::exists(folder / "trials.csv", ignored)) read_kept_table(folder / "trials.csv", kept);
  if (fs::exists(folder / "trials.jsonl", ignored)) read_kept_list(folder / "trials.jsonl", kept);
  const auto count = [](size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  size_t lost = 0;
  for (const auto& [id, trial] : kept) {
    if (!trial.study.empty() && trial.study != study.name)
      throw refuse(fmt::format("this folder holds tables of the study {}, not of {}: {} would be lost",
                               printable(trial.study), study.name, count(kept.size(), "trial")));
    const auto again = written.find(id);
    lost += again == written.end() || (trial.done && !again->second);
  }
  if (lost > 0)
    throw refuse(fmt::format("this folder holds tables of {} of this study, and {} of them would be lost",
                             count(kept.size(), "trial"), lost));
  if (!has_store(folder)) return;
  const Store store = Store::look_at(folder);
  if (const std::string name = store.study().name; name != study.name)
    throw refuse(fmt::format("this folder is that of the study {}, not of {}", printable(name), study.name));
  for (const StoredTrial& trial : store.trials()) lost += !written.contains(trial.id);
  if (lost > 0)
    throw refuse(fmt::format("the study in this folder has {} that these tables lack", count(lost, "trial")));
}

// Scans ask the same, and call the place by another name.
void require_place_for_tables(const fs::path& folder) {
  try {
    require_writable(folder);
  } catch (const Error& fault) {
    throw Error(fault.message(), fault.kind()).in("--to " + folder.string()).hint("choose another --to");
  }
  require_our_tables(folder);
}

}  // namespace

StudyTables study_tables(const Store& store) {
  const Study study = store.study();
  return tables_of(study, with_defaults(study, store.trials()));
}

std::vector<std::string> export_tables(const Study& study, const std::vector<StoredTrial>& stored,
                                       const fs::path& folder, const std::string& format, bool replace) {
  const std::vector<StoredTrial> trials = with_defaults(study, stored);
  const StudyTables tables = tables_of(study, trials);
  require_place_for_tables(folder);
  if (!replace) require_nothing_lost(study, trials, folder);
  std::error_code fault;
  fs::create_directories(folder, fault);
  if (fault) throw Error(fmt::format("cannot make the folder: {}", fault.message())).in(folder.string());
  std::vector<std::pair<std::string, std::string>> files;
  // The other form of an earlier export would be of other trials than the rest.
  const auto there = [&](const char* name) { return fs::exists(folder / name, fault); };
  if (format == "jsonl" || there("trials.jsonl")) files.emplace_back("trials.jsonl", trials_jsonl(trials));
  if (format != "jsonl" || there("trials.csv")) files.emplace_back("trials.csv", csv_text(tables.trials));
  files.emplace_back("summary.csv", csv_text(summary_table(points(trials), trials)));
  if (!tables.published.columns.empty())
    files.emplace_back("published.csv", csv_text(tables.published));
  else if (there("published.csv"))
    remove_file(folder / "published.csv");
  files.emplace_back("study.json", tables.about.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  std::vector<std::string> names;
  for (const auto& [name, content] : files) {
    write_file(folder / name, content);
    names.push_back(name);
  }
  return names;
}

}  // namespace rankscope
