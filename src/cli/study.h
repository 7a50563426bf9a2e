// What `rankscope study` does, one function a subcommand.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "sweep/schedule.h"
#include "sweep/store.h"

namespace rankscope {

struct StudyOptions {
  std::string study;                   // run: a name or a file
  std::vector<std::string> overrides;  // run: KEY=VALUES
  std::string folder;                  // run: --out; the others: the folder they look at
  std::vector<std::string> folders;    // export: those whose trials it writes
  int64_t seeds = 0, steps = 0;        // 0: as the study says
  std::string device = "cpu", precision = "auto";
  int threads = 0;  // 0: all cores
  double lease = 120;
  bool tensorboard = false, dry_run = false;
  std::string format = "csv", to;  // export
  bool force = false;              // export: may replace what is there
  std::string model, metric;       // export --model ID, show --metric NAME
};

int study_list(const StudyOptions& options, Io& io);
int study_run(const StudyOptions& options, Io& io);
int study_resume(const StudyOptions& options, Io& io);
int study_retry(const StudyOptions& options, Io& io);
int study_status(const StudyOptions& options, Io& io);
int study_show(const StudyOptions& options, Io& io);
int study_export(const StudyOptions& options, Io& io);

/// The figure and the table of a store.
void print_study(const Store& store, const std::string& metric, Io& io);

/// What `run --dry-run` prints: the trials, how they stack, what they cost and how long that takes.
void print_plan(const Study& study, const Runner& runner, const std::vector<Axis>& overrides,
                const std::vector<Trial>& trials, const StudyOptions& options, Io& io);

/// 0 means all cores, shared among the processes that mpirun started on this machine.
int thread_count(int asked);

/// 1.2 TFLOP/s, 31 GFLOP/s.
std::string rate_text(double flops_per_second);

}  // namespace rankscope
