#include "cli/input_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>

#include "base/error.h"
#include "base/files.h"
#include "base/progress.h"
#include "cli/arrays.h"
#include "cli/builtin.h"
#include "cli/model_folder.h"
#include "cli/options.h"
#include "cli/replace.h"
#include "report/csv.h"
#include "report/json.h"
#include "report/read.h"
#include "report/write.h"

namespace rankscope {

namespace {

constexpr int64_t kBatchOnCpu = 8,
                  kBatchOnGpu = 64;  // what fills a GPU; halved where its memory is too small

}  // namespace

void set_batch_size(ScanRequest& r) {
  if (r.batch_size == 0) r.batch_size = r.device == "cpu" ? kBatchOnCpu : kBatchOnGpu;
}

void refuse_folders(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    std::error_code ignored;
    if (std::filesystem::is_directory(text, ignored))
      throw usage_error("expected a text file, but got a folder")
          .in("--text " + text)
          .hint("name the model before --text: rankscope scan MODEL --text FILE");
  }
}

void require_format(const std::string& format) {
  const std::vector<std::string> known{"table", "csv", "json"};
  if (std::find(known.begin(), known.end(), format) == known.end())
    throw unknown_name("format", format, known);
}

void add_sample_options(CLI::App& app, ScanRequest& r, std::string& token_ids, std::string& pixels) {
  app.add_option("--text", r.texts,
                 "Text files: prose, or one sample per line; JSONL takes text and text_pair; - is stdin")
      ->type_name("FILE");
  const auto lines = app.add_flag("--lines", r.lines,
                                  "Take every line as a sample, however short; prose is joined otherwise");
  app.add_flag("--whole", r.whole, "Cut the texts into windows of --max-length, whatever their lines are")
      ->excludes(lines);
  app.add_option("--column", r.column, "Where the texts are: a column of CSV or TSV, a key of JSONL")
      ->check(some_name())
      ->type_name("NAME");
  app.add_option(
         "--token-ids", token_ids,
         "File with one sample a line: token ids, or JSON with input_ids, attention_mask and token_type_ids")
      ->type_name("FILE");
  app.add_option("--pixels", pixels, "safetensors file with pixel_values, for models that read images")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--features", [&r](const std::string& file) { r.features = file; },
         "safetensors file with input_features, for models that read sounds (--text: what the decoder reads)")
      ->type_name("FILE");
  app.add_flag("--random-tokens", r.random_tokens, "Uniformly random tokens (or pixels, or sounds)");
  app.add_flag("--zipf", r.zipf,
               "Random tokens as often as words in a text: the r-th with probability ~ 1/r");
  app.add_option("--samples", r.samples, "At most this many samples")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--max-length", r.max_length, "Cut samples to this many tokens")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  const bool automatic = r.batch_size == ScanRequest().batch_size;  // a command may have a number of its own
  const std::string usual =
      automatic ? fmt::format("{}, on a GPU {}", kBatchOnCpu, kBatchOnGpu) : std::to_string(r.batch_size);
  if (automatic) r.batch_size = 0;
  app.add_option("--batch-size", r.batch_size, "Samples computed at once; more is not always faster")
      ->check(whole_number(1, 1 << 16))
      ->default_str(usual);
}

void add_device_options(CLI::App& app, ScanRequest& r) {
  app.add_option("--device", r.device, "cpu, cuda or cuda:N")->type_name("NAME")->capture_default_str();
  app.add_option("--device-memory", r.device_memory,
                 "Use no more of a GPU's memory, as 4GiB: smaller batches, fewer weights ahead")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  app.add_option("--precision", r.precision,
                 "Products on a GPU: float32, or tf32 with its error in the manifest")
      ->type_name("NAME")
      ->capture_default_str();
}

void add_run_options(CLI::App& app, ScanRequest& r, const std::string& seeded) {
  add_device_options(app, r);
  app.add_option("--threads", r.threads, "CPU threads, 0 for all cores")
      ->check(whole_number(0, kMostThreads))
      ->capture_default_str();
  app.add_option("--seed", r.seed, "Seed of " + seeded)->check(whole_number(0))->capture_default_str();
}

void add_input_options(CLI::App& app, InputOptions& o) {
  ScanRequest& r = o.request;
  app.add_option("FOLDER", o.model, "Hugging Face folder; the built-in model when left out");
  app.add_option("--init", o.init,
                 "A shape at random initialisation instead: bert-base, gpt2, ..., or a config.json")
      ->type_name("SHAPE");
  app.add_option("--off", r.off, "Parts taken out first: mlp, head:L5H3, position, ...; join with +")
      ->type_name("PARTS")
      ->allow_extra_args(false);
  add_sample_options(app, r, o.token_ids, o.pixels);
  add_run_options(app, r, "everything random");
  add_out_options(app, o.out, o.force);
  const auto format = app.add_option("--format", o.format, "What is printed: table, csv or json")
                          ->type_name("NAME")
                          ->capture_default_str();
  app.add_flag("--json", o.json, "The same as --format json")->excludes(format);
}

void add_out_options(CLI::App& app, std::string& out, bool& force) {
  app.add_option("--out", out, "Folder for report.html, the tables, the manifest and the arrays behind them")
      ->check(some_name())
      ->type_name("FOLDER");
  app.add_flag("--force", force, "Let --out replace the results of another command");
}

void check_out(const std::string& out, bool force, Io& io) {
  if (out.empty()) return;
  require_writable(out);
  require_replaceable(out, force, io);
}

void fill_in_request(InputOptions& o, Io& io) {
  ScanRequest& r = o.request;
  if (!o.token_ids.empty()) r.token_ids = o.token_ids;
  if (!o.pixels.empty()) r.pixels = o.pixels;
  const bool input = !r.texts.empty() || r.token_ids || r.pixels || r.features || r.random_tokens;
  if (o.init.empty()) {
    r.model = o.model.empty() ? builtin_model() : model_folder(o.model, io);
    if (o.model.empty() && !input) r.texts = {(builtin_model() / "demo.txt").string()};
  } else {
    r.model = o.model;
    r.random_tokens = r.random_tokens || !input;
  }
  set_batch_size(r);
  if (o.json) o.format = "json";
  require_format(o.format);
  refuse_folders(r.texts);
  check_out(o.out, o.force, io);
}

Leftovers::Leftovers(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (!is_scan_folder(folder)) return;  // no run of ours: files of others
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (const std::string name = entry.path().filename().string();
        entry.is_regular_file(ignored) && std::ranges::find(kBesideTables, name) != kBesideTables.end())
      files_.emplace_back(entry.path(), entry.last_write_time(ignored));
}

void Leftovers::remove_old() const {
  std::error_code ignored;
  for (const auto& [file, written] : files_)
    if (std::filesystem::last_write_time(file, ignored) == written) remove_file(file);
}

void write_report(const std::string& folder, const ScanResult& result, const std::function<void()>& also) {
  Results results(result);
  results.name = folder_name(folder);
  write_results(folder, results, [&] {
    if (!result.arrays.empty()) write_arrays(std::filesystem::path(folder) / kArraysFile, result.arrays);
    if (also) also();
  });
}

void say_written(const std::string& folder, Io& io) {
  if (!io.quiet)
    io.err << fmt::format("wrote {}/report.html, metrics.csv, samples.csv, manifest.json\n",
                          printable(folder, 400));
}

int run_and_report(InputOptions& o, Io& io, const std::function<ScanResult(const ProgressCallback&)>& work,
                   const std::function<void(const ScanResult&, std::ostream&)>& table,
                   const std::function<void()>& also) {
  std::optional<ResultFolder> folder;
  if (!o.out.empty()) folder.emplace(o.out);
  const Leftovers earlier(o.out);
  ScanResult result;
  {
    Progress line(io.err, progress_wanted(io.quiet));
    result =
        work([&](int64_t done, int64_t total, const std::string& what) { line.update(done, total, what); });
  }
  result.manifest["command"] = fmt::format("rankscope {}", fmt::join(io.arguments, " "));
  if (!o.out.empty()) write_report(o.out, result, also), earlier.remove_old();
  const TextSink sink = [&](std::string_view text) { io.out << text; };
  if (o.format == "json")
    write_json(result, sink);
  else if (o.format == "csv")
    write_metrics_csv(result.table, sink);
  else
    table(result, io.out);
  if (!o.out.empty()) say_written(o.out, io);
  return 0;
}

}  // namespace rankscope
