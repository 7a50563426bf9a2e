// A study's folder, as `rankscope study export` writes it and the report reads it:
//
//   study.json        {"title", "question", "paper", "keys": [..],
//                      "figure": {"x", "y", "by": [..], "log_x", "log_y", "bound", "lines": [..]}}
//   trials.csv        one row a trial: id, study, state, ..., the keys of its config, its results
//   published.csv     the keys of the figure, metric, published (the value), budget, kind, changed; may be
//   missing trials/<id>/curve.jsonl   {"step", "loss", "test_mse", ...} a line; may be missing
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/json.h"
#include "report/csv.h"

namespace rankscope {

/// What study.json and the tables hold, whether they were read from there or come from a store.
struct StudyTables {
  Json about;
  CellTable trials;
  CellTable published;  // without columns where nothing was published
};

struct StudyCurve {
  std::vector<double> step;
  std::map<std::string, std::vector<double>>
      values;  // "loss", "test_mse": whatever was logged, NaN where not
};

struct StudyResults {
  std::string name, title, question, paper;
  struct Figure {
    std::string x, y, bound;  // columns of trials.csv; no bound: empty
    std::vector<std::string> by, lines;
    bool log_x = false, log_y = false;
  } figure;
  std::vector<std::string> keys;  // columns that are the trials' configuration; empty where nobody said
  CellTable trials;
  CellTable
      published;  // x, the columns of `by`, value, note, kind: those of the figure's y beside our trials
  std::vector<std::string> changed = {};     // of the study's protocol by trials that have one beside them
  std::map<std::string, StudyCurve> curves;  // by trial
};

/// A study with the curves that lie in `folder`. A curve longer than the page can show is thinned; its last
/// line is kept. A line that is not whole yet (a trial is writing it) is left out. Before a trial is done
/// there may be no column for its result.
StudyResults study_results(const StudyTables& tables, const std::filesystem::path& folder);

/// The same, tables and curves from one folder.
StudyResults read_study(const std::filesystem::path& folder);

/// A folder holds a study.
bool is_study_folder(const std::filesystem::path& folder);

/// The study as web/src/data.ts reads it.
void write_study(const StudyResults& study, const TextSink& sink);

}  // namespace rankscope
