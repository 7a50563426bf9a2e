// rankscope plan: what a model can do without, by measured loss.
#include "importance/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/builtin.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/input_options.h"
#include "cli/options.h"
#include "report/columns.h"
#include "report/terminal.h"
#include "report/text.h"

namespace rankscope {
namespace {

struct Options {
  PlanRequest request;
  std::string model, token_ids, pixels, write, out;
  bool json = false, force = false;
};

void print(const PlanResult& r, const ScanResult& report, const Options& o, std::ostream& out) {
  const TerminalStyle style = terminal_style(STDOUT_FILENO);
  print_sentences(report, style, out);
  const auto of = [](int64_t rank, int64_t full) {
    return rank == 0 ? fmt::format("{}", full) : fmt::format("{}/{}", rank, full);
  };
  std::vector<Column> columns{{"layer", {}}, {"heads out", {}, true},       {"QK", {}}, {"OV", {}},
                              {"KV", {}},    {"could share with", {}, true}};
  for (const PlannedLayer& l : r.layers) {
    const std::vector<std::string> cells{
        std::to_string(l.layer), l.heads_out.empty() ? "-" : fmt::format("{}", fmt::join(l.heads_out, " ")),
        of(l.qk, l.full_qk),     of(l.ov, l.full_ov),
        of(l.kv, l.full_kv),     l.shares ? fmt::format("layer {}", l.layer - 1) : "-"};
    for (size_t i = 0; i < cells.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  out << '\n';
  print_columns(columns, style, out);
  out << '\n';
  const auto say = [&](const char* label, const std::string& text) {
    bool first = true;
    for (const std::string& line : wrap(text, 68)) {
      out << pad_right(first ? label : "", 12) << line << '\n';
      first = false;
    }
  };
  size_t taken = 0;
  for (const PlanStep& s : r.steps) taken += s.taken ? s.what.size() : 0;
  say("search",
      fmt::format("{} changes in {} measured steps, {:.0f} forward passes", taken, r.steps.size(), r.passes));
  say("all",
      fmt::format("loss {:.4f} to {:.4f} nats a token on all {} samples: what scan says of the written model",
                  r.all.full, r.all.planned, r.all.samples));
  // In one line, however long: it is there to be copied.
  out << pad_right("peft", 12) << "rank_pattern = " << r.rank_pattern.dump() << '\n';
  if (!o.write.empty())
    say("wrote", fmt::format("{}; rankscope verify {} --against {}/activations.safetensors", o.write, o.write,
                             o.write));
}

int run(Options& o, Io& io) {
  ScanRequest& r = o.request.scan;
  r.model = o.model.empty() ? builtin_model() : std::filesystem::path(o.model);
  if (!o.token_ids.empty()) r.token_ids = o.token_ids;
  if (!o.pixels.empty()) r.pixels = o.pixels;
  const bool input = !r.texts.empty() || r.token_ids || r.pixels || r.random_tokens;
  if (o.model.empty() && !input) r.texts = {(builtin_model() / "demo.txt").string()};
  set_batch_size(r);
  refuse_folders(r.texts);
  check_out(o.out, o.force, io);
  if (!o.write.empty()) {
    std::error_code ignored;
    if (std::filesystem::exists(o.write, ignored) && !std::filesystem::is_empty(o.write, ignored))
      throw usage_error("there is something in this folder already")
          .in("--write " + o.write)
          .hint("a new folder");
    const auto whole = [](const std::string& folder) {
      return (std::filesystem::absolute(folder) / "").lexically_normal();
    };
    if (!o.out.empty() && whole(o.write) == whole(o.out))
      throw usage_error("the model and the report need a folder each").in("--write " + o.write);
    o.request.write = o.write;
  }
  InputOptions shown;
  shown.out = o.out;
  PlanResult plan;
  return run_and_report(
      shown, io,
      [&](const ProgressCallback& progress) {
        plan = engine().plan(o.request, progress);
        return std::move(plan.report);
      },
      [&](const ScanResult& report, std::ostream& out) {
        if (o.json)
          out << report.manifest.at("plan").dump(1) << '\n';
        else
          print(plan, report, o, out);
      });
}

std::function<int(Io&)> prepare(CLI::App& app) {
  auto o = std::make_shared<Options>();
  ScanRequest& r = o->request.scan;
  app.add_option("FOLDER", o->model, "Hugging Face folder; the built-in model when left out");
  add_sample_options(app, r, o->token_ids, o->pixels);
  app.add_option("--budget", o->request.budget, "How much the loss may rise, in nats a token")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--write", o->write, "A folder for the model that the plan leaves, of the same architecture")
      ->check(some_name())
      ->type_name("FOLDER");
  app.add_option("--dtype", r.dtype, "Arithmetic: float32 or float64")
      ->type_name("TYPE")
      ->capture_default_str();
  add_run_options(app, r, "random tokens and of what is hidden from masked models");
  add_out_options(app, o->out, o->force);
  app.add_flag("--json", o->json, "The plan as JSON");
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
