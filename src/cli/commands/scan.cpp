// rankscope scan: where a checkpoint's attention has rank.
#include "scan/scan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/progress.h"
#include "cli/builtin.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "report/csv.h"
#include "report/json.h"
#include "report/terminal.h"
#include "report/write.h"

namespace rankscope {
namespace {

constexpr const char* kParts =
    "Parts of --off, joined by + (post-norm: u = N1(x + attn x), y = N2(u + mlp u);\n"
    "pre-norm: u = x + attn(N1 x), y = u + mlp(N2 u)):\n"
    "  attention-skip  post: u = N1(attn x)     pre: u = attn(N1 x)\n"
    "  mlp-skip        post: y = N2(mlp u)      pre: y = mlp(N2 u)\n"
    "  skip            both of them\n"
    "  mlp             the MLP with its skip and, post-norm, N2: y = u\n"
    "  norm            N1, N2 and the final norm become the identity; the embedding's norm stays\n"
    "  position        learned positions are not added, rotary and relative terms left out\n"
    "  head:L5H3       head 3 of layer 5 writes zero\n";

struct Options {
  ScanRequest request;
  std::string model, out, format = "table";
  std::string lenses, baseline, token_ids, pixels;
  std::vector<std::string> thresholds;
  bool json = false;
};

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : text + ",") {
    if (c != ',') word += c;
    else if (!word.empty()) out.push_back(std::move(word)), word.clear();
  }
  return out;
}

void set_threshold(Thresholds& t, const std::string& text) {
  const size_t at = text.find('=');
  const std::string name = text.substr(0, at);
  const std::map<std::string, double*> known{{"collapse", &t.collapse}, {"collapse_ratio", &t.collapse_ratio},
                                             {"sink", &t.sink},         {"dead", &t.dead},
                                             {"epsilon", &t.epsilon},   {"low_rank", &t.low_rank},
                                             {"massive", &t.massive},   {"short_text", &t.short_text}};
  const auto it = known.find(name);
  if (it == known.end()) {
    std::vector<std::string> names;
    for (const auto& [key, value] : known) names.push_back(key);
    throw unknown_name("threshold", name, names, "rankscope scan --help");
  }
  try {
    size_t used = 0;
    const std::string number = at == std::string::npos ? "" : text.substr(at + 1);
    *it->second = std::stod(number, &used);
    if (used == number.size()) return;
  } catch (const std::logic_error&) {
  }
  throw usage_error(fmt::format("\"{}\" is not a threshold", printable(text))).hint("--threshold collapse=0.05");
}

// What the model and the input are when nothing was said: the built-in ones.
void fill_in(Options& o) {
  ScanRequest& r = o.request;
  r.model = o.model.empty() ? builtin_model() : std::filesystem::path(o.model);
  if (!o.baseline.empty()) r.baseline = o.baseline;
  if (!o.token_ids.empty()) r.token_ids = o.token_ids;
  if (!o.pixels.empty()) r.pixels = o.pixels;
  r.lenses = split_commas(o.lenses);
  for (const std::string& text : o.thresholds) set_threshold(r.thresholds, text);
  const bool input = !r.texts.empty() || r.token_ids || r.pixels || r.random_tokens;
  if (o.model.empty() && !input) r.texts = {(builtin_model() / "demo.txt").string()};
  if (o.json) o.format = "json";
}

void print(const ScanResult& result, const std::string& format, Io& io) {
  const TextSink sink = [&](std::string_view text) { io.out << text; };
  if (format == "json") return write_json(result, sink);
  if (format == "csv") return write_metrics_csv(result.table, sink);
  print_results(result, terminal_style(STDOUT_FILENO), io.out);
}

int run(Options& o, Io& io) {
  fill_in(o);
  ScanResult result;
  {
    Progress line(io.err, progress_wanted(io.quiet));
    result = engine().scan(o.request, [&](int64_t done, int64_t total, const std::string& what) {
      line.update(done, total, what);
    });
  }
  if (!o.out.empty()) write_results(o.out, result);
  print(result, o.format, io);
  if (!o.out.empty() && !io.quiet) io.err << fmt::format("wrote {}/metrics.csv, samples.csv, manifest.json\n", o.out);
  return 0;
}

std::function<int(Io&)> prepare(CLI::App& app) {
  auto o = std::make_shared<Options>();
  ScanRequest& r = o->request;
  app.add_option("model", o->model, "Hugging Face folder; the built-in model when left out");
  app.add_option("--text", r.texts, "Text files, one sample per line; JSONL takes text and text_pair; - is stdin");
  app.add_flag("--whole", r.whole, "Cut the texts into windows of --max-length instead of lines");
  app.add_option("--token-ids", o->token_ids, "File with one sample of token ids per line");
  app.add_option("--pixels", o->pixels, "safetensors file with pixel_values, for models that read images");
  app.add_flag("--random-tokens", r.random_tokens, "Uniformly random tokens (or pixels)");
  app.add_option("--samples", r.samples, "At most this many samples")->capture_default_str();
  app.add_option("--max-length", r.max_length, "Cut samples to this many tokens")->capture_default_str();
  app.add_option("--batch-size", r.batch_size, "Samples computed at once; more is not always faster")
      ->capture_default_str();
  app.add_option("--off", r.off, "A variant without these parts: skip, skip+mlp, head:L5H3 (below); repeat for more")
      ->take_all();
  app.add_option("--rank", r.rank, "A variant with each head's map cut: qk=8, ov=16, qk=8+ov=16; repeat for more")
      ->take_all();
  app.add_option("--baseline", o->baseline, "Judge against this checkpoint on the same input");
  app.add_flag("--null", r.null_models, "Add the null models: random weights, shuffled tokens");
  app.add_flag("--ablate", r.ablate, "Take heads that write little out, alone and together, and measure output_kl");
  app.add_option("--layers", r.layers, "Layers the lenses look at: 0-5,11");
  app.add_option("--lens", o->lenses, "Lenses to use, by commas (rankscope lenses lists them)");
  app.add_option("--threshold", o->thresholds,
                 "A number of the verdict: collapse=0.1, collapse_ratio, sink, dead, epsilon, low_rank, massive")
      ->take_all();
  app.add_option("--dtype", r.dtype, "Arithmetic: float32 or float64; stored float16 and bfloat16 are converted")
      ->capture_default_str();
  app.add_option("--device", r.device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--threads", r.threads, "CPU threads, 0 for all cores")->capture_default_str();
  app.add_option("--seed", r.seed, "Seed of random tokens, null models and sampled rows")->capture_default_str();
  app.add_option("--out", o->out, "Folder for metrics.csv, samples.csv and manifest.json");
  app.add_option("--format", o->format, "What is printed: table, csv or json")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
  app.add_flag("--json", o->json, "The same as --format json");
  app.footer(kParts + std::string("\n") + app.get_footer());
  return [o](Io& io) { return run(*o, io); };
}

}  // namespace

extern const Command command_scan{
    .name = "scan",
    .summary = "Scan a checkpoint: how much rank is left, who holds it up, what to do",
    .examples = {"rankscope scan", "rankscope scan bert/ --text FILE --off skip --off skip+mlp",
                 "rankscope scan bert/ --text FILE --rank qk=8 --rank ov=16",
                 "rankscope scan tuned/ --baseline base/ --text FILE --out out/tuned",
                 "rankscope scan bert/ --random-tokens --layers 0-5,11 --lens residual,spectra --json"},
    .prepare = prepare};

}  // namespace rankscope
