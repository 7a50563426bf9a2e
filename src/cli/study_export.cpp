// study export: tables, or the model of one trial.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "cli/engine.h"
#include "cli/replace.h"
#include "cli/saved.h"
#include "cli/study.h"
#include "sweep/gathered.h"
#include "sweep/tables.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

// A model that was exported before is written over; nobody else's is.
void require_place_for_model(const fs::path& folder) {
  std::error_code ignored;
  const auto refuse = [&](const std::string& what) {
    return usage_error(what).in("--model ID " + folder.string()).hint("choose another folder");
  };
  const fs::path whole = fs::weakly_canonical(folder, ignored);
  if (!whole.empty() && whole == whole.root_path()) throw refuse("this is the root folder");
  if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored))
    throw refuse("this is a file, not a folder");
  if (kind_of_folder(folder) == "study") throw refuse("this is the folder of a study");
  const auto is_ours = [&] {
    try {
      const Json config = read_json(folder / "config.json", 64 << 20);
      return JsonObject(config, folder.string()).string("model_type", "") == "rankscope";
    } catch (const Error&) {
      return false;
    }
  };
  for (const char* name :
       {"config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json"})
    if (fs::exists(folder / name, ignored) && !is_ours())
      throw refuse(fmt::format("this is the folder of another model: it has a {}", name));
}

void export_model(const Store& store, const StudyOptions& o) {
  require_place_for_model(o.to);
  std::vector<std::string> known;
  for (const StoredTrial& trial : store.trials()) known.push_back(trial.id);
  const std::optional<StoredTrial> trial = store.find(o.model);
  if (!trial) throw unknown_name("trial", o.model, known).in(o.folders.front());
  if (trial->state != TrialState::done)
    throw Error(fmt::format("the trial {} is {}, not done", trial->id, to_text(trial->state)))
        .in(o.folders.front());
  const Runner& runner = find_runner(engine().runners(), trial->runner, o.folders.front());
  if (runner.export_model == nullptr)
    throw Error(fmt::format("the runner {} trains no model", runner.name)).in(o.folders.front());
  runner.export_model({trial->id, parse_canonical(trial->config, runner.keys), store.trial_folder(trial->id)},
                      o.to);
}

Gathered gather_folders(const StudyOptions& o) {
  if (o.folders.size() > 1 && o.to.empty())
    throw usage_error("the tables of several folders need a place of their own").hint("--to FOLDER");
  const std::vector<fs::path> folders(o.folders.begin(), o.folders.end());
  const bool stores = std::all_of(folders.begin(), folders.end(), has_store);
  return gather(folders, stores ? std::vector<const Runner*>{} : engine().runners());
}

}  // namespace

int study_export(const StudyOptions& o, Io& io) {
  if (!o.model.empty()) {
    if (o.folders.size() > 1)
      throw usage_error("a model is that of one trial of one store")
          .hint("study export FOLDER --model ID DIR");
    export_model(Store::look_at(o.folders.front()), o);
    if (!io.quiet)
      io.err << fmt::format("wrote {0}: rankscope scan {0} --random-tokens\n", printable(o.to, 400));
    return 0;
  }
  if (o.format != "csv" && o.format != "jsonl") throw unknown_name("format", o.format, {"csv", "jsonl"});
  const Gathered all = gather_folders(o);
  const std::string to = o.to.empty() ? o.folders.front() : o.to;
  require_no_scan(to, "--to");
  const std::vector<std::string> files = export_tables(all.study, all.trials, to, o.format, o.force);
  if (io.quiet) return 0;
  if (all.repeated > 0)
    io.err << fmt::format("note: {} of a trial that has another; the first finished one is kept\n",
                          all.repeated == 1 ? "1 row is" : fmt::format("{} rows are", all.repeated));
  for (const std::string& note : all.notes) io.err << "note: " << note << '\n';
  io.err << fmt::format("wrote {}/{}\n", printable(to, 400), fmt::join(files, ", "));
  return 0;
}

}  // namespace rankscope
