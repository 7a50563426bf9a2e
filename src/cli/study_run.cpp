// study run, resume and retry.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <optional>

#include "base/error.h"
#include "base/progress.h"
#include "cli/cluster.h"
#include "cli/engine.h"
#include "cli/replace.h"
#include "cli/study.h"
#include "report/write.h"
#include "sweep/cluster.h"
#include "sweep/tables.h"
#include "sweep/tensorboard.h"

namespace rankscope {
namespace {

std::atomic<bool> stop_asked{false};

// The first signal asks for an orderly end; the second has its usual effect.
void listen_for_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_asked = true; };
  action.sa_flags = SA_RESETHAND;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup means it
  }
}

void require_precision(const StudyOptions& o) {
  const std::vector<std::string> known{"auto", "fp32", "tf32"};
  if (std::find(known.begin(), known.end(), o.precision) == known.end())
    throw unknown_name("precision", o.precision, known);
  if (o.precision == "tf32" && o.device == "cpu")  // in the words of scan
    throw usage_error("TF32 is an arithmetic of GPUs").in("--precision tf32").hint("--device cuda");
}

SweepOptions sweep_options(const StudyOptions& o) {
  SweepOptions out;
  out.device = o.device;
  out.threads = thread_count(o.threads);
  out.precision = o.precision;
  out.lease_seconds = o.lease;
  out.stop = &stop_asked;
  return out;
}

void write_all_events(const Store& store) {
  for (const StoredTrial& trial : store.trials())
    if (trial.state == TrialState::done) write_events(store.folder(), trial.id, trial.finished);
}

void say_what_failed(const Store& store, const std::string& folder, Io& io) {
  const std::vector<StoredTrial> trials = with_defaults(store.study(), store.trials());
  std::vector<Point> each;  // whatever became of them
  for (const StoredTrial& trial : trials) each.push_back({parse_canonical(trial.config), {}});
  const std::vector<std::string> keys = varying(each);
  for (size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].state != TrialState::failed) continue;
    const std::string settings = settings_text(each[i].config, keys);
    io.err << fmt::format("failed: {}{}: {}\n", trials[i].id,
                          settings.empty() ? "" : fmt::format(" ({})", printable(settings, 200)),
                          printable(trials[i].reason, 500));
  }
  io.err << fmt::format("again: rankscope study retry {}\n", printable(folder, 400));
}

int carry_out(Store& store, const Runner& runner, const StudyOptions& o, Io& io) {
  const SweepOptions options = sweep_options(o);
  listen_for_signals();
  SweepReport report;
  {
    Progress line(io.err, progress_wanted(io.quiet));
    const std::function<void(const SweepProgress&)> tell = [&](const SweepProgress& p) {
      line.update(p.flops_total > 0 ? p.flops_done / p.flops_total : 0,
                  fmt::format("{}/{} trials  {:.3g} steps/s  {}  {}", p.trials_done, p.trials_total,
                              p.steps_per_second, rate_text(p.flops_per_second), p.what));
    };
    report = cluster() == nullptr ? run_study(store, runner, options, tell)
                                  : coordinate(store, runner, options, *cluster(), tell);
  }
  if (o.tensorboard) write_all_events(store);
  if (stop_asked && report.left > 0) {  // it may have come when the last trial had its result
    io.err << fmt::format("stopped: {} trials are left\ngo on: rankscope study resume {}\n", report.left,
                          printable(o.folder, 400));
    return 1;
  }
  print_study(store, o.metric, io);
  if (report.elsewhere > 0 && !io.quiet)
    io.err << fmt::format("{} trials still run in other processes: rankscope study status {}\n",
                          report.elsewhere, printable(o.folder, 400));
  if (store.counts().failed > 0) {
    say_what_failed(store, o.folder, io);
    return 1;
  }
  return 0;
}

// Under mpirun the first process does what `first` says and the others work for it; otherwise there is only
// `first`.
int alone_or_together(const StudyOptions& o, Io& io, const std::function<int()>& first) {
  require_precision(o);  // before a store is made
  Transport* others = cluster();
  if (others == nullptr) return first();
  if (others->rank() > 0) {
    listen_for_signals();
    work(engine().runners(), sweep_options(o), *others);
    return 0;
  }
  if (ends_with_its_workers() && !io.quiet)
    io.err << "note: without mpirun --enable-recovery Open MPI ends the whole job when a worker dies\n";
  try {
    return first();
  } catch (...) {
    dismiss(*others);  // they must not wait for someone who left
    throw;
  }
}

const Runner& runner_of(const Study& study, const StudyOptions& o) {
  const Runner& runner = find_runner(engine().runners(), study.runner, study.place);
  if (o.device != "cpu" && !runner.cuda)
    throw usage_error(fmt::format("this study runs on the CPU, not on {}", printable(o.device)))
        .in("study " + study.name)
        .hint("leave out --device");
  return runner;
}

// More steps than the study has lengthen a warm-up that it chose, unless that is given, too.
std::optional<std::string> note_of_warmup(const Study& study, const std::vector<Axis>& overrides) {
  const double share = number_or_nan(study.protocol, "warmup"),
               steps = number_or_nan(study.protocol, "steps");
  double given = std::nan("");
  for (const Axis& axis : overrides) {
    if (axis.names.front() == "warmup") return {};
    if (axis.names.front() == "steps")
      for (const std::vector<Scalar>& point : axis.points)
        given = std::fmax(given, number_or_nan({{"steps", point.front()}}, "steps"));
  }
  if (!(share > 0) || !(given > steps)) return {};
  return fmt::format(
      "the warm-up is a share of the steps, {:g} of {:.0f} where the study has {:g} of {:.0f}; "
      "warmup={:.3g} keeps its {:.0f} steps",
      share, given, share, steps, share * steps / given, share * steps);
}

// The reference's protocol has a schedule of its own, whatever the key says.
std::optional<std::string> note_of_reference(const std::vector<Trial>& all) {
  const bool other = std::any_of(all.begin(), all.end(), [](const Trial& trial) {
    const double share = number_or_nan(trial.config, "warmup");
    return text_or(trial.config, "protocol", "") == "reference" && std::isfinite(share) && share != 0.05;
  });
  if (!other) return {};
  return "protocol=reference warms up for a twentieth of the steps, whatever warmup says; warmup=0.05 names "
         "it so";
}

// --seeds and --steps are keys in other words, which not every runner has.
Axis axis_of(const char* option, int64_t given, const std::string& text, const Runner& runner) {
  const std::string name = text.substr(0, text.find('='));
  const bool known =
      std::any_of(runner.keys.begin(), runner.keys.end(), [&](const Key& key) { return key.name == name; });
  if (!known)
    throw usage_error(fmt::format("{} does not go with this study: its trials have no {}", option, name))
        .in(fmt::format("{} {}", option, given))
        .hint(fmt::format("leave out {}", option));
  return parse_override(text, runner.keys);
}

// What retry does: also the trials run that a killed process left, which have not failed.
std::string retry_text(int64_t failed, int64_t unfinished) {
  const std::string again = failed == 0   ? "no trial has failed"
                            : failed == 1 ? "1 failed trial runs again"
                                          : fmt::format("{} failed trials run again", failed);
  if (unfinished == 0) return again + (failed == 0 ? ", and none is unfinished" : "");
  return fmt::format("{}; {} unfinished go{} on", again, unfinished, unfinished == 1 ? "es" : "");
}

int run_named(StudyOptions o, Io& io) {
  Study study = load_study(o.study);
  if (o.folder.empty()) o.folder = "out/" + study.name;
  const Runner& runner = runner_of(study, o);
  for (const Key& key : runner.keys) study.defaults[key.name] = key.otherwise;
  std::vector<Axis> overrides;
  for (const std::string& text : o.overrides) overrides.push_back(parse_override(text, runner.keys));
  if (o.seeds > 0)
    overrides.push_back(axis_of("--seeds", o.seeds, fmt::format("seed=0..{}", o.seeds - 1), runner));
  if (o.steps > 0) overrides.push_back(axis_of("--steps", o.steps, fmt::format("steps={}", o.steps), runner));
  std::vector<std::string> notes;
  const std::vector<Trial> all = trials(study, runner, overrides, &notes);
  for (const std::optional<std::string>& note : {note_of_warmup(study, overrides), note_of_reference(all)})
    if (note) notes.push_back(*note);
  for (auto& [name, value] : study.fixed)  // in the words of trials: "softmax" is "soft" there
    value = checked(find_key(runner.keys, name, study.place), value, study.place);
  for (const std::string& note : notes)
    if (!io.quiet) io.err << fmt::format("note: {}\n", printable(note, 400));
  require_no_scan(o.folder, "--out");
  if (o.dry_run) {
    print_plan(study, runner, overrides, all, o, io);
    return 0;
  }
  if (!all.empty() && cluster() == nullptr)  // a missing GPU shows before a store is made
    runner.stack_limit(all.front().config, o.device);
  require_writable(o.folder);
  Store store(o.folder, true);
  store.keep_study(study);
  const int64_t done = store.counts().done, added = store.add(study, all);
  store.reclaim();  // where study.db was lost, results are still in trials/
  const Counts counts = store.counts();
  const int64_t back = std::clamp<int64_t>(counts.done - done, 0, added);
  if (!io.quiet)
    io.err << fmt::format("{}: {} trials, {} of them new{}, in {}\n", printable(study.name), counts.all(),
                          added - back, back > 0 ? fmt::format(", {} read back", back) : "",
                          printable(o.folder, 400));
  return carry_out(store, runner, o, io);
}

}  // namespace

int study_run(const StudyOptions& o, Io& io) {
  if (o.dry_run) {
    require_precision(o);
    return run_named(o, io);
  }
  return alone_or_together(o, io, [&] { return run_named(o, io); });
}

int study_resume(const StudyOptions& o, Io& io) {
  return alone_or_together(o, io, [&] {
    Store store(o.folder);
    return carry_out(store, runner_of(store.study(), o), o, io);
  });
}

int study_retry(const StudyOptions& o, Io& io) {
  return alone_or_together(o, io, [&] {
    Store store(o.folder);
    const auto study = store.study();
    const Runner& runner = runner_of(study, o);
    store.reclaim();  // trials of a process that was killed are unfinished
    const int64_t unfinished = store.counts().pending, again = store.retry();
    if (!io.quiet) io.err << retry_text(again, unfinished) << '\n';
    return carry_out(store, runner, o, io);
  });
}

}  // namespace rankscope
