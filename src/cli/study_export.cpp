// study export: tables, or the model of one trial.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "cli/engine.h"
#include "cli/saved.h"
#include "cli/study.h"
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
  if (!trial) throw unknown_name("trial", o.model, known).in(o.folder);
  if (trial->state != TrialState::done)
    throw Error(fmt::format("the trial {} is {}, not done", trial->id, to_text(trial->state))).in(o.folder);
  const Runner& runner = find_runner(engine().runners(), trial->runner, o.folder);
  if (runner.export_model == nullptr)
    throw Error(fmt::format("the runner {} trains no model", runner.name)).in(o.folder);
  runner.export_model({trial->id, parse_canonical(trial->config, runner.keys), store.trial_folder(trial->id)},
                      o.to);
}

}  // namespace

int study_export(const StudyOptions& o, Io& io) {
  const Store store = Store::look_at(o.folder);
  if (!o.model.empty()) {
    export_model(store, o);
    if (!io.quiet)
      io.err << fmt::format("wrote {0}: rankscope scan {0} --random-tokens\n", printable(o.to, 400));
    return 0;
  }
  if (o.format != "csv" && o.format != "jsonl") throw unknown_name("format", o.format, {"csv", "jsonl"});
  const std::string to = o.to.empty() ? o.folder : o.to;
  const std::vector<std::string> files = export_tables(store, to, o.format);
  if (!io.quiet) io.err << fmt::format("wrote {}/{}\n", printable(to, 400), fmt::join(files, ", "));
  return 0;
}

}  // namespace rankscope
