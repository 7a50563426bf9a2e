// A study: a question, the grid of trials that answers it, and the values of others beside them. A TOML file;
// the built-in ones are the src/studies/*.toml files, named by their file names.
//
//   title = "..."          question = "..."       paper = "..."        runner = "train"
//   [fixed]                what every trial shares
//   [grid]                 lists of values; tables in a list vary together: points = [{rank = 1, heads = 16}]
//   [protocol]             the budget; seeds = 3 stands for seed = [0, 1, 2]
//   [figure]               x, y, by, log_x, log_y, bound, lines
//   [[published]]          metric, statistic, budget, source, columns, rows; across and values for wide
//   tables
//   [[reference]]          the same, of numbers that no paper printed: `source` says what made them
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "studies/overrides.h"
#include "studies/runner.h"

namespace rankscope {

struct Figure {
  std::string x, y = "test_mse";
  std::vector<std::string> by;  // one curve for each of their values
  bool log_x = false, log_y = false;
  std::string bound;               // a result drawn under the curves
  std::vector<std::string> lines;  // results drawn across: chance, the whole network
};

/// Values to stand beside ours: what a paper printed ([[published]]), or what no paper did ([[reference]]: a
/// plain program of the same model, tables nobody published).
struct Published {
  std::string metric = "test_mse",
              statistic = "best";  // what of ours stands beside it: best or mean of seeds
  std::string budget, source;      // "100,000 steps, best training loss of 5 seeds"
  std::vector<std::string> columns;
  struct Row {
    std::vector<Scalar> point;  // a value for each column
    double value = 0;
    int line = 0;  // of the file
  };
  std::vector<Row> rows;
  bool printed = true;  // in a paper, or in a figure of one

  const char* kind() const { return printed ? "published" : "reference"; }
};

struct Study {
  std::string name, title, question, paper, runner;
  std::string source, place;  // its text and where that came from
  Config fixed, protocol;
  Config defaults;  // of its runner's keys, where a store knows them: reading a file needs no runner
  std::vector<Axis> grid;
  int64_t seeds = 0;  // 0: the grid says
  Figure figure;
  std::vector<Published> published;
  std::map<std::string, int> lines;  // where each key stands
};

struct Trial {
  std::string id;
  Config config;
};

/// What a study's file says. Keys of the runner are checked later, by `trials`.
Study parse_study(std::string_view toml, const std::string& name, const std::string& place);

/// The built-in study of that name, or the file at that path (it ends in .toml or has a slash).
Study load_study(const std::string& name_or_path);

/// Names of the built-in studies, alphabetically.
std::vector<std::string> builtin_studies();

/// Every trial of the study, with what the command line overrides, in the order of the grid: axes as written,
/// the last turns fastest, seeds last. A point the runner refuses is an error that names it.
///
/// An override replaces the axis or the setting of its key and holds in every trial, whatever the order of
/// the overrides; a key that is given twice is an error. What it does to keys that vary together:
/// studies/coupled.h. Of what is then no entry of the study, a combination that the runner refuses is left
/// out where the given values run with other entries. `notes` are for whoever gave the overrides.
std::vector<Trial> trials(const Study& study, const Runner& runner, const std::vector<Axis>& overrides,
                          std::vector<std::string>* notes = nullptr);

/// The study after its overrides in one line: "train d=16 n=2 {rank,heads}={1,16},{16,1} seed=0,1,2".
std::string spec_text(const Study& study, const std::vector<Axis>& overrides);

/// The runner of that name, or an error that names the nearest.
const Runner& find_runner(const std::vector<const Runner*>& runners, const std::string& name,
                          const std::string& place);

}  // namespace rankscope
