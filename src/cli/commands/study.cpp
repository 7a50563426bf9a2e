// rankscope study: sweeps of small models that answer a question about rank, beside the published figure.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/options.h"
#include "cli/study.h"
#include "cli/study_keys.h"

namespace rankscope {
namespace {

using Action = int (*)(const StudyOptions&, Io&);

constexpr const char* kOverMachines =
    "Over machines: mpirun --enable-recovery -n 5 rankscope study run NAME. The first process keeps the "
    "store and\n"
    "hands out stacks, the others work. Without --enable-recovery Open MPI 4.1 ends the whole job when one "
    "worker dies;\n"
    "nothing is lost then either: study resume goes on.\n";

void device_options(CLI::App& app, StudyOptions& o) {
  app.add_option("--device", o.device, "cpu, cuda or cuda:N")->type_name("NAME")->capture_default_str();
  app.add_option("--threads", o.threads, "CPU threads, 0 for all cores")
      ->check(whole_number(0, 1024))
      ->capture_default_str();
  app.add_option(
         "--precision", o.precision,
         "Of products on CUDA: auto, fp32 or tf32; auto takes TF32 where it moves the first gradient by less "
         "than a tenth of what another batch does")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--lease", o.lease, "Seconds of silence after which a process counts as dead")
      ->check(number_from(1, 1'000'000))  // eleven days
      ->capture_default_str();
  app.add_flag("--tensorboard", o.tensorboard, "Event files in tensorboard/ for every finished trial");
}

CLI::App* subcommand(CLI::App& app, const char* name, const char* summary) {
  CLI::App* sub = app.add_subcommand(name, summary);
  sub->fallthrough();  // --quiet belongs to the command
  return sub;
}

CLI::App* on_folder(CLI::App& app, const char* name, const char* summary, StudyOptions& o) {
  CLI::App* sub = subcommand(app, name, summary);
  sub->add_option("FOLDER", o.folder, "The folder that run wrote: out/NAME")->required()->check(some_name());
  return sub;
}

std::function<int(Io&)> prepare_study(CLI::App& app) {
  auto o = std::make_shared<StudyOptions>();
  auto action = std::make_shared<Action>(nullptr);
  const auto does = [&](CLI::App* sub, Action what) {
    sub->callback([action, what] { *action = what; });
    return sub;
  };
  app.require_subcommand(1);
  does(subcommand(app, "list", "The built-in studies"), study_list);
  does(subcommand(app, "keys", "The runners; of one, what its trials can be told and what they measure"),
       study_keys)
      ->add_option("RUNNER", o->study, "One of those that study keys lists")
      ->check(some_name());
  CLI::App* run = does(subcommand(app, "run", "Run a study, or go on with one"), study_run);
  run->add_option("STUDY", o->study, "A name from study list, or a TOML file")->required();
  run->add_option("KEY-VALUES", o->overrides,
                  "Other values: lr=0.003,0.01 rank=1,8,64 layers=1..5 d=8..128*2");
  run->add_option("--out", o->folder, "Folder of the store; out/STUDY when left out")
      ->check(some_name())
      ->type_name("FOLDER");
  run->add_option("--seeds", o->seeds, "This many seeds, from 0")->check(whole_number(1, kMostOfARange));
  run->add_option("--steps", o->steps, "This many steps a trial")->check(whole_number(1));
  run->add_flag("--dry-run", o->dry_run,
                "Print the trials, how they stack and how long they take; run nothing");
  device_options(*run, *o);
  run->footer(kOverMachines);
  device_options(*does(on_folder(app, "resume", "Go on where it was killed or stopped", *o), study_resume),
                 *o);
  device_options(*does(on_folder(app, "retry", "Run what failed once more", *o), study_retry), *o);
  does(on_folder(app, "status", "How far it is", *o), study_status);
  does(on_folder(app, "show", "The figure and the table, with the published values", *o), study_show)
      ->add_option("--metric", o->metric, "Another result than the figure's: best_test_mse, seconds, ...")
      ->check(some_name())
      ->type_name("NAME");
  CLI::App* out = does(subcommand(app, "export", "Tables, or the model of a trial"), study_export);
  out->add_option("FOLDER", o->folders,
                  "The folder that run wrote: out/NAME. Several of one study, stores or tables that were "
                  "exported, become one table")
      ->required()
      ->check(some_name())
      ->type_name("FOLDER");
  const auto format = out->add_option("--format", o->format, "Of the trials: csv or jsonl")
                          ->type_name("NAME")
                          ->capture_default_str();
  const auto to = out->add_option("--to", o->to, "Where the tables go; the study's folder when left out")
                      ->check(some_name())
                      ->type_name("FOLDER");
  const auto force =
      out->add_flag("--force", o->force,
                    "Let the tables replace others: of another study, or with more trials of this one");
  const auto model =
      out->add_option("--model", o->model, "Write the model of this trial instead, for scan to read");
  model->type_name("ID FOLDER")
      ->expected(2)
      ->each([o, first = std::make_shared<bool>(true)](const std::string& text) {
        (*first ? o->model : o->to) = text;
        *first = false;
      })
      ->check(some_name())
      ->excludes(format)
      ->excludes(to)
      ->excludes(force);
  return [o, action](Io& io) { return (*action)(*o, io); };
}

}  // namespace

extern const Command command_study{
    .name = "study",
    .summary = "Train small models to answer a question about rank, beside the published figure",
    .examples = {"rankscope study list", "rankscope study run quick",
                 "rankscope study keys train     what a study of this runner can set, and what it measures",
                 "rankscope study run fig1 --device cuda --seeds 3 --steps 10000 --dry-run",
                 "rankscope study run fig1 rank=48 --out out/fig1      adds trials to that store",
                 "rankscope study run my-sweep.toml lr=0.003,0.01 rank=1,8,64",
                 "rankscope study resume out/fig1", "rankscope study show out/fig1",
                 "rankscope study export out/fig1 --format jsonl",
                 "rankscope study export here/fig1 there/fig1 --to all    slices of several machines",
                 "rankscope study export out/fig1 --model ID DIR       a folder that scan reads"},
    .prepare = prepare_study};

}  // namespace rankscope
