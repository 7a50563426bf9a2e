// rankscope scan: where a checkpoint's attention has rank.
#include "scan/scan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <ostream>
#include <set>

#include "base/error.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/input_options.h"
#include "cli/model_folder.h"
#include "cli/options.h"
#include "cli/parity.h"
#include "cli/threshold_option.h"
#include "report/loss_line.h"
#include "report/terminal.h"
#include "verdict/verdict.h"

namespace rankscope {
namespace {

constexpr const char* kBelowScan =
    "Parts of --off, joined by + (post-norm: u = N1(x + attn x), y = N2(u + mlp u);\n"
    "pre-norm: u = x + attn(N1 x), y = u + mlp(N2 u)):\n"
    "  attention-skip  post: u = N1(attn x)     pre: u = attn(N1 x)\n"
    "  mlp-skip        post: y = N2(mlp u)      pre: y = mlp(N2 u)\n"
    "  skip            both of them; parallel blocks have one skip, and this takes it out\n"
    "  mlp             the MLP with its skip and, post-norm, N2: y = u\n"
    "  norm            N1, N2 and the final norm become the identity; the embedding's norm stays\n"
    "  position        learned positions are not added, rotary and relative terms left out\n"
    "  head:L5H3       head 3 of layer 5 writes zero; head:encoder.L5H3, head:cross.L5H3: of\n"
    "                  another stream, where a decoder reads an encoder\n"
    "  expert:L3E5     expert 5 of layer 3 writes zero\n"
    "Alone, one after another, for the verdict:\n"
    "  tokens          each layer's tokens become their mean: whether the output needs what tells\n"
    "                  them apart (`use`); (L + 1) / 2 forward passes and one\n"
    "  fisher          how much of what tells tokens apart the output sees, to first order\n"
    "                  (`spread_fisher`); 8 backward passes and two forward ones\n"
    "  length          half of every text, half of that, ...: how sinks fare, and what they drain;\n"
    "                  under one forward pass\n";

// "  collapse=0.1        residual below this: ..."
std::string thresholds_in_words() {
  size_t widest = 0;
  for (const ThresholdInfo& t : threshold_infos())
    widest = std::max(widest, fmt::format("{}={}", t.name, t.value).size());
  std::string text = "Thresholds of the verdict, with their defaults:\n";
  for (const ThresholdInfo& t : threshold_infos())
    text += fmt::format("  {:<{}}  {}\n", fmt::format("{}={}", t.name, t.value), widest, t.meaning);
  return text;
}

struct ScanOptions {
  InputOptions input;
  std::string lenses, baseline, against, sink_shift;
  std::vector<std::string> thresholds;
};

// Each dose, and the same mass moved to no key, to all, and to a random one.
void add_sink_shifts(const std::string& doses, ScanRequest& r) {
  for (const std::string& dose : split_commas("--sink-shift", doses)) {
    double nats = 0;
    const char* end = dose.data() + dose.size();
    const auto read = std::from_chars(dose.data(), end, nats);
    if (read.ec != std::errc{} || read.ptr != end || !(std::abs(nats) <= 100) || nats == 0)
      throw usage_error(fmt::format("expected nats from -100 to 100, not 0, but got \"{}\"", printable(dose)))
          .in("--sink-shift " + doses)
          .hint("--sink-shift -2,2");
    r.replace.push_back(fmt::format("softmax=shifted_sink:nats={:g}", nats));
    for (const char* to : {"nothing", "uniform", "random"})
      r.replace.push_back(fmt::format("softmax=shifted_control:nats={:g},to={}", nats, to));
  }
}

void fill_in(ScanOptions& o, Io& io) {
  fill_in_request(o.input, io);
  ScanRequest& r = o.input.request;
  r.init = o.input.init;
  if (!r.init.empty() && !o.against.empty())
    throw usage_error("--verify compares a checkpoint, and --init has none");
  if (!o.baseline.empty()) r.baseline = model_folder(o.baseline, io);
  if (!o.lenses.empty()) r.lenses = split_commas("--lens", o.lenses);
  if (!o.sink_shift.empty()) add_sink_shifts(o.sink_shift, r);
  std::set<std::string> set;
  for (const std::string& text : o.thresholds)
    if (!set.insert(set_threshold(r.thresholds, text)).second)
      throw usage_error("this threshold is given twice").in("--threshold " + printable(text));
}

// Before the work: a network that is computed wrongly is not worth scanning in silence.
Json parity(const ScanOptions& o) {
  if (o.against.empty()) return parity_not_checked();
  const ScanRequest& r = o.input.request;
  const std::vector<LayerError> errors = engine().verify({r.model, o.against, r.dtype, r.device, r.threads});
  return parity_of(errors, kParityTolerance, o.against);
}

void note_parity(ScanResult& result) {
  const Json& parity = result.manifest["parity"];
  if (!parity["checked"].get<bool>() || parity["agrees"].get<bool>()) return;
  result.notes.push_back(fmt::format(
      "the activations DIFFER from those of {}: {:.3g} of the largest value at {}",
      parity["against"].get<std::string>(), parity["worst"].get<double>(), parity["at"].get<std::string>()));
  result.manifest["notes"] = result.notes;
}

int run_scan(ScanOptions& o, Io& io) {
  fill_in(o, io);
  const Json agreement = parity(o);
  ScanRequest& r = o.input.request;
  if (!o.input.out.empty()) {  // the exact attention is written as it passes
    r.show = true;
    r.patterns = std::filesystem::path(o.input.out) / "patterns.safetensors";
  }
  return run_and_report(
      o.input, io,
      [&](const ProgressCallback& progress) {
        ScanResult result = engine().scan(r, progress);
        result.manifest["parity"] = agreement;
        note_parity(result);
        if (const std::string loss = loss_line(result.table); !loss.empty()) result.manifest["loss"] = loss;
        return result;
      },
      [](const ScanResult& result, std::ostream& out) {
        print_results(result, terminal_style(STDOUT_FILENO), out);
      });
}

std::function<int(Io&)> prepare_scan(CLI::App& app) {
  auto o = std::make_shared<ScanOptions>();
  ScanRequest& r = o->input.request;
  app.add_option("FOLDER", o->input.model, "Hugging Face folder; the built-in model when left out");
  app.add_option("--init", o->input.init,
                 "A shape at random initialisation instead: bert-base, gpt2, ..., or a config.json")
      ->type_name("SHAPE");
  add_sample_options(app, r, o->input.token_ids, o->input.pixels);
  app.add_option("--off", r.off,
                 "A variant without these parts: skip, skip+mlp, head:L5H3 (below); repeat for more")
      ->type_name("PARTS")
      ->allow_extra_args(false);
  app.add_option(
         "--rank", r.rank,
         "A variant with each head's map cut: qk=8, ov=16, qk=8+ov=16; qk=auto; a curve: qk=1,2,4 (ov, kv)")
      ->type_name("RANKS")
      ->allow_extra_args(false);
  app.add_option("--replace", r.replace,
                 "A variant with another attention, untrained: softmax=fastmax:p=2@L3-5; repeat for more")
      ->type_name("OLD=NEW")
      ->allow_extra_args(false);
  app.add_option("--sink-shift", o->sink_shift,
                 "Variants with so many nats more on the first key, and three controls: -2,2")
      ->type_name("NATS");
  app.add_option("--baseline", o->baseline, "Judge against this checkpoint on the same input")
      ->type_name("FOLDER");
  app.add_option(
         "--verify", o->against,
         "Compare every layer with these saved activations first (rankscope verify); part of the report")
      ->type_name("FILE");
  app.add_flag("--null", r.null_models, "Add the null models: random weights, shuffled tokens");
  app.add_option("--ablate", r.ablate,
                 "Take parts out, one at a time: heads (if nothing is named), mlps, layers, experts, all; or "
                 "estimates")
      ->type_name("KINDS")
      ->expected(0, 1)
      ->default_str("heads");
  app.add_option("--ablate-by", r.ablate_by,
                 "What stands in the place of a part: zero, mean (over tokens), resample (another token's)")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--ablate-samples", r.ablate_samples,
                 "Samples that --ablate and curves of --rank run, one of each of so many equal parts")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--layers", r.layers, "Layers the lenses look at: 0-5,11")->type_name("LIST");
  app.add_option(
         "--lens", o->lenses,
         "Lenses to use, by commas (rankscope lenses lists them); all but those on request when left out")
      ->type_name("LIST");
  app.add_option("--threshold", o->thresholds,
                 "A number of the verdict: collapse=0.05 (below), or residual=0.05 as tables name it; repeat "
                 "for more")
      ->type_name("NAME=X")
      ->allow_extra_args(false);
  app.add_option("--dtype", r.dtype,
                 "Arithmetic: float32 or float64; stored float16 and bfloat16 are converted")
      ->type_name("TYPE")
      ->capture_default_str();
  add_run_options(app, r, "random tokens, null models and sampled rows");
  add_out_options(app, o->input.out, o->input.force);
  const auto format = app.add_option("--format", o->input.format, "What is printed: table, csv or json")
                          ->type_name("NAME")
                          ->capture_default_str();
  app.add_flag("--json", o->input.json, "The same as --format json")->excludes(format);
  app.footer(fmt::format("{}\n{}\n{}", kBelowScan, thresholds_in_words(), app.get_footer()));
  return [o](Io& io) { return run_scan(*o, io); };
}

}  // namespace

extern const Command command_scan{
    .name = "scan",
    .summary = "Scan a checkpoint: how much rank is left, who holds it up, what to do",
    .examples = {"rankscope scan", "rankscope scan bert/ --text FILE --off skip --off skip+mlp",
                 "rankscope scan bert/ --text FILE --rank qk=8 --rank ov=16",
                 "rankscope scan tuned/ --baseline base/ --text FILE --out out/tuned",
                 "rankscope scan bert/ --random-tokens --layers 0-5,11 --lens residual,spectra --json"},
    .prepare = prepare_scan};

}  // namespace rankscope
