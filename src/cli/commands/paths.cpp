// rankscope paths: what the paths of each length carry.
#include "paths/paths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/input_options.h"
#include "cli/options.h"
#include "cli/path_counts.h"
#include "paths/layer_paths.h"
#include "paths/limits.h"
#include "report/columns.h"
#include "report/text.h"

namespace rankscope {
namespace {

constexpr const char* kBelowPaths =
    "A path goes, at every attention, along the skip or through one head. Semantics:\n"
    "  frozen    attention, norms and gains held at this input: the exact sum of all paths of each length\n"
    "  rerun     the network run again along sampled paths: attention recomputed, no skips, norms without "
    "gains\n"
    "  subpaths  the same with skips kept: each path brings all its sub-paths\n"
    "\n"
    "--chained: attention matrices of k layers, one head of each, multiplied as the forward pass does,\n"
    "P_k ... P_1; ||P - s u v^T|| / ||P|| in the norm sqrt(||.||_1 ||.||_inf), s u v^T its first singular "
    "term.\n"
    "\n"
    "Readings of length k: only (those paths alone), up to (with all shorter ones and the bias), without "
    "(the\n"
    "output less those paths). output_kl compares the model's output distribution with the whole one's.\n";

struct PathsOptions {
  InputOptions input;
  PathsRequest request;
  bool count = false, published = false;
  int64_t layers = 0, heads = 0;
  std::vector<double> alpha;  // --count: one for all layers, or one for each
};

// Rows of paths carry the length as their depth.
const Row* find(const ResultTable& t, std::string_view variant, std::string_view metric, int length,
                int layer = -1, int head = -1) {
  for (const Row& r : t.rows)
    if (r.depth == length && r.layer == layer && r.head == head && r.tokens == "all" &&
        r.variant == variant && r.metric == metric)
      return &r;
  return nullptr;
}

std::string path_cell(const ResultTable& t, const char* variant, const char* metric, int length,
                      int layer = -1, int head = -1) {
  const Row* r = find(t, variant, metric, length, layer, head);
  return r == nullptr ? "-" : number_text(r->value);
}

std::string with_error(const ResultTable& t, const std::string& variant, const char* metric, int length) {
  const Row* r = find(t, variant, metric, length);
  if (r == nullptr) return "-";
  return std::isnan(r->stderr_) || r->stderr_ == 0 ? number_text(r->value)
                                                   : number_text(r->value) + " ± " + number_text(r->stderr_);
}

// Columns without a single number take no room.
void drop_empty(std::vector<Column>& columns) {
  std::erase_if(columns, [](const Column& c) {
    return std::all_of(c.cells.begin(), c.cells.end(), [](const std::string& s) { return s == "-"; });
  });
}

void print_by_length(const ScanResult& result, std::ostream& out) {
  const ResultTable& t = result.table;
  const int depth = static_cast<int>(result.spec.depth());
  std::vector<Column> columns{length_column(depth)};
  add_counts(columns, path_counts(layer_paths(result.spec)));
  const auto column = [&](const char* title, const char* reading, const char* metric) {
    Column c{title, {}};
    for (int k = 0; k <= depth; ++k) c.cells.push_back(path_cell(t, reading, metric, k));
    columns.push_back(c);
  };
  column("norm", "only", "path_norm");
  column("its share", "only", "path_share");
  column("residual", "only", "residual_fro_rel");
  column("effective rank", "only", "effective_rank");
  column("only: kl", "only", "output_kl");
  column("up to: kl", "upto", "output_kl");
  column("without: kl", "allbut", "output_kl");
  drop_empty(columns);
  print_columns(columns, terminal_style(STDOUT_FILENO), out);
}

void print_sampled(const ScanResult& result, const std::string& semantics, std::ostream& out) {
  const int depth = static_cast<int>(result.spec.depth());
  std::vector<Column> columns{length_column(depth)};
  add_counts(columns, path_counts(layer_paths(result.spec)));
  const auto column = [&](const char* title, const char* metric) {
    Column c{title, {}};
    for (int k = 0; k <= depth; ++k) c.cells.push_back(with_error(result.table, semantics, metric, k));
    columns.push_back(c);
  };
  column("residual", "residual_fro_rel");
  column("effective rank", "effective_rank");
  column("kl", "output_kl");
  drop_empty(columns);
  print_columns(columns, terminal_style(STDOUT_FILENO), out);
}

void print_chained(const ScanResult& result, std::ostream& out) {
  const int depth = static_cast<int>(result.spec.depth());
  std::vector<Column> columns{{"length", {}}};
  for (int k = 1; k <= depth; ++k) columns[0].cells.push_back(std::to_string(k));
  const auto column = [&](const char* title, const char* metric) {
    Column c{title, {}};
    for (int k = 1; k <= depth; ++k) c.cells.push_back(path_cell(result.table, "chained", metric, k));
    columns.push_back(c);
  };
  column("lower quartile", "path_rank1_distance_q1");
  column("median", "path_rank1_distance");
  column("upper quartile", "path_rank1_distance_q3");
  column("published", "path_published");
  column("ratio", "path_published_ratio");
  drop_empty(columns);
  out << fmt::format("distance of the product {} of attention matrices from rank one\n",
                     result.manifest["paths"]["order"].get<std::string>());
  print_columns(columns, terminal_style(STDOUT_FILENO), out);
}

void print_by_layer(const ScanResult& result, std::ostream& out) {
  const int depth = static_cast<int>(result.spec.depth());
  std::vector<Column> columns{{"layer", {}}};
  for (int l = 0; l < depth; ++l) columns[0].cells.push_back(std::to_string(l));
  const auto column = [&](const std::string& title, const char* metric, int length) {
    Column c{title, {}};
    for (int l = 0; l < depth; ++l) c.cells.push_back(path_cell(result.table, "through", metric, length, l));
    columns.push_back(c);
  };
  column("norm", "path_norm", -1);
  column("residual", "residual_fro_rel", -1);
  column("effective rank", "effective_rank", -1);
  column("without: kl", "output_kl", -1);
  column("alpha", "path_alpha", -1);
  for (int k = 1; k <= depth; ++k) column(fmt::format("norm, {}", k), "path_norm", k);
  drop_empty(columns);
  print_columns(columns, terminal_style(STDOUT_FILENO), out);
}

void print_by_head(const ScanResult& result, std::ostream& out) {
  std::vector<Column> columns{{"layer", {}}};
  const auto heads = static_cast<int>(result.spec.blocks.front().attention().heads);
  for (int h = 0; h < heads; ++h) columns.push_back({fmt::format("H{}", h), {}});
  for (int l = 0; l < static_cast<int>(result.spec.depth()); ++l) {
    columns[0].cells.push_back(std::to_string(l));
    for (int h = 0; h < heads; ++h)
      columns[static_cast<size_t>(h) + 1].cells.push_back(
          path_cell(result.table, "through", "path_norm", -1, l, h));
  }
  out << "norm of all paths through each head\n";
  print_columns(columns, terminal_style(STDOUT_FILENO), out);
}

void print_paths(const ScanResult& result, const PathsRequest& request, std::ostream& out) {
  if (request.chained)
    print_chained(result, out);
  else if (request.semantics != "frozen")
    print_sampled(result, request.semantics, out);
  else if (request.by == "length")
    print_by_length(result, out);
  else
    request.by == "layer" ? print_by_layer(result, out) : print_by_head(result, out);
  out << '\n';
  print_sentences(result, terminal_style(STDOUT_FILENO), out);
}

// A table of counts alone would leave out what these ask for without a word.
void refuse_what_is_not_counted(const CLI::App& app, bool sizes) {
  const std::vector<std::string> counted{"--help",  "--quiet", "--count",    "--layers",
                                         "--heads", "--alpha", "--published"};
  std::vector<std::string> given;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && std::find(counted.begin(), counted.end(), name) == counted.end())
      given.push_back(name);
  }
  if (given.empty()) return;
  throw usage_error(
      fmt::format("--count without a model prints one table, and takes no {}", fmt::join(given, ", no ")))
      .hint(sizes ? "leave it out; or leave out --layers and --heads, to count the paths of a model"
                  : "leave it out");
}

int run_paths(PathsOptions& o, const CLI::App& app, Io& io) {
  const bool sizes = o.layers > 0 || o.heads > 0;
  if (sizes && !o.count) throw usage_error("--layers and --heads belong to --count");
  if (o.published && !o.count) throw usage_error("--published belongs to --count");
  if (!o.alpha.empty() && !sizes) throw usage_error("--alpha belongs to --count --layers L --heads H");
  const bool counts_alone =
      o.count && (sizes || (o.published && o.input.model.empty() && o.input.init.empty()));
  if (counts_alone) refuse_what_is_not_counted(app, sizes);
  if (o.count && sizes) {
    if (o.layers < 1 || o.heads < 1) throw usage_error("--count needs both --layers and --heads, or a model");
    print_count(o.layers, o.heads, o.alpha, io.out);
  }
  if (o.published) {
    if (sizes) io.out << '\n';
    print_published_counts(io.out);
  }
  if (counts_alone) return 0;
  if (o.published) io.out << '\n';
  fill_in_request(o.input, io);
  o.request.scan = o.input.request;
  o.request.init = o.input.init;
  return run_and_report(
      o.input, io, [&](const ProgressCallback& progress) { return engine().paths(o.request, progress); },
      [&](const ScanResult& result, std::ostream& out) { print_paths(result, o.request, out); });
}

std::function<int(Io&)> prepare_paths(CLI::App& app) {
  auto o = std::make_shared<PathsOptions>();
  o->input.request.samples = 8;
  o->input.request.batch_size = 1;
  add_input_options(app, o->input);
  app.add_option("--by", o->request.by, "Paths by length, layer or head")
      ->type_name("WHAT")
      ->capture_default_str();
  app.add_option("--semantics", o->request.semantics, "frozen, rerun or subpaths (below)")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("--grade-mlp", o->request.grade_mlp, "Count MLPs as parts of their own");
  app.add_flag("--grade-norm", o->request.grade_norm, "Count norms too, as what they do beyond passing on");
  app.add_option("--paths", o->request.paths, "rerun, subpaths: different paths in a draw")
      ->check(whole_number(kPathsInADraw.least, kPathsInADraw.most))
      ->capture_default_str();
  app.add_option("--repeats", o->request.repeats, "rerun, subpaths: draws, for the error bars")
      ->check(whole_number(kRepeats.least, kRepeats.most))
      ->capture_default_str();
  app.add_flag("--chained", o->request.chained,
               "Multiply attention matrices along sampled paths: how far from rank one");
  app.add_option("--chains", o->request.chains, "chained: different paths of each length")
      ->check(whole_number(kChains.least, kChains.most))
      ->capture_default_str();
  app.add_flag("--reference-order", o->request.reference_order,
               "chained: P_1 ... P_k as in the published code, not P_k ... P_1");
  app.add_option("--dtype", o->input.request.dtype, "Arithmetic: float32 or float64")
      ->type_name("TYPE")
      ->capture_default_str();
  app.add_flag("--count", o->count, "How many paths of each length, by count; with a model also by norm");
  app.add_option("--layers", o->layers, "With --count: layers of a model that is not there")
      ->check(whole_number(1, 100'000));
  app.add_option("--heads", o->heads, "With --count: heads of a model that is not there")
      ->check(whole_number(1, 100'000));
  app.add_flag("--published", o->published, "With --count: the nine models of the paper");
  add_list(app, "--alpha", o->alpha,
           "With --count: the paper's model of what paths weigh; what a layer passes on, 0 to 1",
           between_zero_and_one())
      ->type_name("A[,A...]");
  app.footer(kBelowPaths + std::string("\n") + app.get_footer());
  return [o, &app](Io& io) { return run_paths(*o, app, io); };
}

}  // namespace

extern const Command command_paths{
    .name = "paths",
    .summary = "Sum all paths of each length exactly: which ones carry the output",
    .examples = {"rankscope paths", "rankscope paths bert/ --text FILE --by head",
                 "rankscope paths bert/ --text FILE --semantics rerun --paths 20 --repeats 5",
                 "rankscope paths --init bert-base --chained",
                 "rankscope paths --count --layers 12 --heads 12", "rankscope paths --count --published"},
    .prepare = prepare_paths};

}  // namespace rankscope
