// rankscope plan: what a model can do without, by measured loss.
#include "importance/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/input_options.h"
#include "cli/options.h"
#include "importance/unfinished.h"
#include "report/columns.h"
#include "report/terminal.h"
#include "report/text.h"
#include "report/write.h"

namespace rankscope {
namespace {

struct Options {
  InputOptions input;
  double nats = PlanRequest().budget;
  std::string budget, write;
};

// A label and its text, as many lines as it needs.
void say(const char* label, const std::string& text, std::ostream& out) {
  bool first = true;
  for (const std::string& line : wrap(text, 68)) {
    out << pad_right(first ? label : "", 12) << line << '\n';
    first = false;
  }
}

void print_plan(const PlanResult& r, const ScanResult& report, std::ostream& out) {
  const TerminalStyle style = terminal_style(STDOUT_FILENO);
  print_sentences(report, style, out);
  const auto of = [](const PlannedLayer& l, int64_t rank, int64_t full) {
    if (!l.has_heads()) return std::string("-");
    return rank == 0 ? fmt::format("{}", full) : fmt::format("{}/{}", rank, full);
  };
  std::vector<Column> columns{{"layer", {}}, {"heads out", {}, true},       {"QK", {}}, {"OV", {}},
                              {"KV", {}},    {"could share with", {}, true}};
  for (const PlannedLayer& l : r.layers) {
    const std::vector<std::string> cells{
        std::to_string(l.layer), l.heads_out.empty() ? "-" : fmt::format("{}", fmt::join(l.heads_out, " ")),
        of(l, l.qk, l.full_qk),  of(l, l.ov, l.full_ov),
        of(l, l.kv, l.full_kv),  l.shares ? fmt::format("layer {}", l.layer - 1) : "-"};
    for (size_t i = 0; i < cells.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  out << '\n';
  print_columns(columns, style, out);
  out << '\n';
  say("search",
      fmt::format("{} change{} in {} measured steps, {:.0f} forward passes", r.changes,
                  r.changes == 1 ? "" : "s", r.steps.size(), r.passes),
      out);
  say("all",
      fmt::format("loss {:.4f} to {:.4f} nats a token on all {} samples: what scan says of the written model",
                  r.all.full, r.all.planned, r.all.samples),
      out);
  // In one line, however long: it is there to be copied.
  out << pad_right("peft", 12) << "rank_pattern = " << r.rank_pattern.dump() << '\n';
}

void check_write(const Options& o) {
  std::error_code ignored;
  const bool taken =
      std::filesystem::is_directory(o.write, ignored) && !std::filesystem::is_empty(o.write, ignored);
  const bool itself = std::filesystem::equivalent(o.write, o.input.request.model, ignored);
  if (taken && (itself || !was_left_unfinished(o.write)))
    throw usage_error("there is something in this folder already")
        .in("--write " + o.write)
        .hint("a new folder");
  const auto whole = [](const std::string& folder) {
    return (std::filesystem::absolute(folder) / "").lexically_normal();
  };
  if (!o.input.out.empty() && whole(o.write) == whole(o.input.out))
    throw usage_error("the model and the report need a folder each").in("--write " + o.write);
}

// The folder, made before the search, which takes long; it goes again where nothing is written into it.
std::unique_ptr<ResultFolder> folder_for(const std::string& option, const std::string& folder) {
  std::unique_ptr<ResultFolder> made;
  if (folder.empty()) return made;
  try {
    made = std::make_unique<ResultFolder>(folder);
  } catch (const Error& e) {
    throw Error(e.message()).in(option + " " + folder).hint("another folder");
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error("nothing can be written into this folder").in(option + " " + folder).hint("another folder");
  return made;
}

int run(Options& o, Io& io) {
  if (!parse_not_negative(o.budget, o.nats))
    throw usage_error("--budget must be a number of nats, 0 or more");
  fill_in_request(o.input, io);
  const PlanRequest request{o.input.request, o.nats, !o.write.empty()};
  const std::string& to = o.input.out;
  if (!o.write.empty()) check_write(o);
  const Leftovers earlier(to);
  const auto for_model = folder_for("--write", o.write), for_report = folder_for("--out", to);
  InputOptions shown;
  PlanResult plan;
  // First the plan is printed and then it is written: a full disk does not lose it.
  return run_and_report(
      shown, io,
      [&](const ProgressCallback& progress) {
        plan = engine().plan(request, progress);
        return std::move(plan.report);
      },
      [&](const ScanResult& report, std::ostream& out) {
        if (o.input.json)
          out << report.manifest.at("plan").dump(1) << '\n';
        else
          print_plan(plan, report, out);
        out.flush();
        if (!to.empty()) {
          write_report(to, report);
          earlier.remove_old();
          say_written(to, io);
        }
        if (o.write.empty()) return;
        plan.write(o.write);
        if (!o.input.json)
          say("wrote",
              fmt::format("{}; rankscope verify {} --against {}/activations.safetensors",
                          printable(o.write, 400), to_copy(o.write, "FOLDER"), to_copy(o.write, "FOLDER")),
              out);
      });
}

std::function<int(Io&)> prepare(CLI::App& app) {
  auto o = std::make_shared<Options>();
  ScanRequest& r = o->input.request;
  app.add_option("FOLDER", o->input.model, "Hugging Face folder; the built-in model when left out");
  add_sample_options(app, r, o->input.token_ids, o->input.pixels);
  o->budget = fmt::format("{}", o->nats);
  app.add_option("--budget", o->budget, "How much the loss may rise, in nats a token")
      ->type_name("NATS")
      ->capture_default_str();
  app.add_option("--write", o->write, "A folder for the model that the plan leaves, of the same architecture")
      ->check(some_name())
      ->type_name("FOLDER");
  app.add_option("--dtype", r.dtype, "Arithmetic: float32 or float64")
      ->type_name("TYPE")
      ->capture_default_str();
  add_run_options(app, r, "random tokens and of what is hidden from masked models");
  add_out_options(app, o->input.out, o->input.force);
  app.add_flag("--json", o->input.json, "The plan as JSON");
  return [o](Io& io) { return run(*o, io); };
}

}  // namespace

extern const Command command_plan{
    .name = "plan",
    .summary = "Plan what a model can do without for a given rise of its loss, and write that model",
    .examples = {"rankscope plan", "rankscope plan gpt2/ --text FILE --budget 0.02",
                 "rankscope plan bert/ --text FILE --budget 0.01 --write pruned/ --out out/plan"},
    .prepare = prepare};

}  // namespace rankscope
