// rankscope plan: what a model can do without, by measured loss.
#include "importance/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/progress.h"
#include "cli/builtin.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/input_options.h"
#include "cli/options.h"
#include "report/text.h"

namespace rankscope {
namespace {

struct Options {
  PlanRequest request;
  std::string model, token_ids, pixels, write;
  bool json = false;
};

std::string loss_text(const PlannedLoss& l) {
  return fmt::format("{:.4f} to {:.4f} nats a token, {:+.4f}{}", l.full, l.planned, l.gained,
                     l.error > 0 ? fmt::format(" ± {:.2g}", l.error) : "");
}

void print(const PlanResult& r, const Options& o, std::ostream& out) {
  out << fmt::format("{:>5}  {:<24} {:>9} {:>9} {:>9}\n", "layer", "heads out", "QK", "OV", "KV");
  const auto of = [](int64_t rank, int64_t full) {
    return rank == 0 ? fmt::format("{}", full) : fmt::format("{}/{}", rank, full);
  };
  for (const PlannedLayer& l : r.layers) {
    const std::string heads = l.heads_out.empty() ? "-" : fmt::format("{}", fmt::join(l.heads_out, " "));
    out << fmt::format("{:>5}  {} {:>9} {:>9} {:>9}\n", l.layer, pad_right(heads, 24), of(l.qk, l.full_qk),
                       of(l.ov, l.full_ov), of(l.kv, l.full_kv));
  }
  const auto say = [&](const char* label, const std::string& text) {
    bool first = true;
    for (const std::string& line : wrap(text, 68)) {
      out << pad_right(first ? label : "", 12) << line << '\n';
      first = false;
    }
  };
  out << '\n';
  size_t taken = 0;
  for (const PlanStep& s : r.steps) taken += s.taken ? s.what.size() : 0;
  say("search",
      fmt::format("loss {} (budget {}, {} samples); {} changes in {} measured steps, {:.0f} forward passes",
                  loss_text(r.search), r.budget, r.search.samples, taken, r.steps.size(), r.passes));
  say("held out", fmt::format("loss {} on the last {} samples, which the search never read",
                              loss_text(r.held_out), r.held_out.samples));
  say("all", fmt::format("loss {} on {} samples: what scan says of the written model", loss_text(r.all),
                         r.all.samples));
  say("saves",
      fmt::format("{} of {} parameters ({:.2f} %) in factored form, {:.1f} % of the cache of keys and values",
                  r.saved, r.parameters,
                  100.0 * static_cast<double>(r.saved) / static_cast<double>(r.parameters),
                  100 * r.cache_saved));
  say("peft", fmt::format("rank_pattern = {}", r.rank_pattern.dump()));
  for (const std::string& note : r.notes) say("note", terminal_text(note));
  if (!o.write.empty())
    say("wrote", fmt::format("{}; rankscope verify {} --against {}/activations.safetensors", o.write, o.write,
                             o.write));
}

Json as_json(const PlanResult& r) {
  const auto loss = [](const PlannedLoss& l) {
    return Json{{"full", l.full},
                {"planned", l.planned},
                {"gained", l.gained},
                {"stderr", std::isfinite(l.error) ? Json(l.error) : Json()},
                {"samples", l.samples}};
  };
  Json out{{"architecture", r.architecture},
           {"budget", r.budget},
           {"layers", Json::array()},
           {"steps", Json::array()},
           {"search", loss(r.search)},
           {"held_out", loss(r.held_out)},
           {"all", loss(r.all)},
           {"parameters", r.parameters},
           {"parameters_saved", r.saved},
           {"cache_saved", r.cache_saved},
           {"rank_pattern", r.rank_pattern},
           {"passes", r.passes},
           {"notes", r.notes}};
  for (const PlannedLayer& l : r.layers)
    out["layers"].push_back({{"layer", l.layer},
                             {"heads", l.heads},
                             {"heads_out", l.heads_out},
                             {"qk", l.qk > 0 ? l.qk : l.full_qk},
                             {"ov", l.ov > 0 ? l.ov : l.full_ov},
                             {"kv", l.kv > 0 ? l.kv : l.full_kv}});
  for (const PlanStep& s : r.steps)
    out["steps"].push_back({{"what", s.what}, {"gained", s.gained}, {"taken", s.taken}});
  return out;
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
  if (!o.write.empty()) {
    std::error_code ignored;
    if (std::filesystem::exists(o.write, ignored) && !std::filesystem::is_empty(o.write, ignored))
      throw usage_error("there is something in this folder already")
          .in("--write " + o.write)
          .hint("a new folder");
    o.request.write = o.write;
  }
  PlanResult result;
  {
    Progress line(io.err, progress_wanted(io.quiet));
    result = engine().plan(o.request, [&](int64_t done, int64_t total, const std::string& what) {
      line.update(done, total, what);
    });
  }
  if (o.json)
    io.out << as_json(result).dump(1) << '\n';
  else
    print(result, o, io.out);
  return 0;
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
  add_device_options(app, r);
  app.add_option("--threads", r.threads, "CPU threads, 0 for all cores")
      ->check(whole_number(0, 1024))
      ->capture_default_str();
  app.add_option("--seed", r.seed, "Seed of random tokens and of what is hidden from masked models")
      ->check(whole_number(0))
      ->capture_default_str();
  app.add_flag("--json", o->json, "The plan as JSON");
  return [o](Io& io) { return run(*o, io); };
}

}  // namespace

extern const Command command_plan{
    .name = "plan",
    .summary = "Plan what a model can do without for a given rise of its loss, and write that model",
    .examples = {"rankscope plan", "rankscope plan gpt2/ --text FILE --budget 0.02",
                 "rankscope plan bert/ --text FILE --budget 0.01 --write pruned/"},
    .prepare = prepare};

}  // namespace rankscope
