// rankscope bench: how near training comes to LibTorch at its best and to what the machine could do.
#include "bench/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <ostream>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/options.h"
#include "report/columns.h"
#include "report/text.h"
#include "report/write.h"

namespace rankscope {
namespace {

constexpr const char* kBelowBench =
    "Cases: L=layers W=modules heads=heads of the rank-against-heads study (d = 64, 16 tokens, batch 256, "
    "MLP "
    "2048),\n"
    "data, backward pass and optimizer included, xN as a stack of N trials on CUDA; attention alone per "
    "width "
    "r of a\n"
    "head, forth and back. Loss and gradients of all sides are compared from the same parameters before "
    "anything is\n"
    "timed; a time is the median of several rounds.\n"
    "  eager  LibTorch as written first: a loop over modules, torch's AdamW\n"
    "  best   LibTorch with all heads and trials in one product, its fused attention, and a CUDA graph\n"
    "  limit  counted FLOPs at the machine's matrix rate, or counted bytes at its copy rate (*), whichever "
    "is "
    "more\n"
    "With --case variants, and only then: attention that is not softmax from 1,024 to 65,536 tokens,\n"
    "beside the same in chunks composed of LibTorch's operations and its fastest softmax.\n"
    "With --growth the cases are tokens, width, heads and stack: the time of our step as that grows.\n";

struct BenchOptions {
  BenchRequest request;
  std::string out;
  bool json = false;
};

std::string milliseconds(double x) { return number_text(x); }
std::string ratio(double a, double b) { return number_text(a / b); }

void print_rates(const BenchResult& r, std::ostream& out) {
  const std::string where =
      r.device == "cpu" ? fmt::format("{} thread{}", r.threads, r.threads == 1 ? "" : "s") : r.precision;
  out << fmt::format("{}, {}{}, LibTorch {}: products {} GFLOP/s, copies {} GB/s\n\n", r.device, where,
                     r.processor_time ? ", processor time" : "", r.torch, number_text(r.matrix_rate / 1e9),
                     number_text(r.copy_rate / 1e9));
}

void print_rows(const BenchResult& r, const TerminalStyle& style, std::ostream& out) {
  std::vector<Column> columns{{"ms", {}, true}, {"ours", {}},   {"eager", {}}, {"best", {}},
                              {"limit", {}},    {"/eager", {}}, {"/best", {}}, {"/limit", {}}};
  for (const BenchRow& row : r.rows) {
    const std::vector<std::string> cells{row.name,
                                         milliseconds(row.ours),
                                         milliseconds(row.eager),
                                         milliseconds(row.best),
                                         milliseconds(row.limit) + (row.by_bytes ? "*" : ""),
                                         ratio(row.ours, row.eager),
                                         ratio(row.ours, row.best),
                                         ratio(row.ours, row.limit)};
    for (size_t i = 0; i < cells.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  print_columns(columns, style, out);
  for (const BenchRow& row : r.rows)
    if (!row.fault.empty()) out << fmt::format("DIFFERS: {}: {}\n", row.name, row.fault);
}

void print_growth(const BenchResult& r, const TerminalStyle& style, std::ostream& out) {
  for (const GrowthCurve& curve : r.growth) {
    std::vector<Column> columns{{curve.axis, {"ms a step"}, true}};
    for (size_t i = 0; i < curve.values.size(); ++i)
      columns.push_back({std::to_string(curve.values[i]), {milliseconds(curve.milliseconds[i])}});
    print_columns(columns, style, out);
    out << fmt::format("slope {:.2f}, of the counted FLOPs {:.2f}\n\n", curve.slope, curve.flops_slope);
  }
}

void print_variants(const BenchResult& r, const TerminalStyle& style, std::ostream& out) {
  for (const VariantCurve& c : r.variants) {
    const std::string name = fmt::format("{} {}", c.form, c.backward ? "back" : "forth");
    if (!c.fault.empty()) {
      out << fmt::format("DIFFERS: {}: {}\n", name, c.fault);
      continue;
    }
    std::vector<Column> columns{{name + ", ms", {"ours", "composed", "softmax", "limit"}, true}};
    for (size_t i = 0; i < c.tokens.size(); ++i)
      columns.push_back({std::to_string(c.tokens[i]),
                         {milliseconds(c.ours[i]), milliseconds(c.composed[i]), milliseconds(c.softmax[i]),
                          milliseconds(c.limit[i]) + (c.by_bytes[i] ? "*" : "")}});
    print_columns(columns, style, out);
    out << fmt::format(
               "{} heads of {}; slope {:.2f}; faster than softmax from {} tokens on, C(D + p, p) = {}\n",
               c.heads, c.width, c.slope, number_text(std::round(c.crossover)), c.state_rows)
        << fmt::format(
               "of the matrix rate: ours {:.0f}%, softmax {:.0f}%; off float64 by {:.1e}, composed "
               "{:.1e}\n\n",
               100 * c.share, 100 * c.softmax_share, c.error, c.composed_error);
  }
}

Json bench_json(const BenchResult& r, const Io& io) {
  const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); };
  Json out{{"command", fmt::format("rankscope {}", fmt::join(io.arguments, " "))},
           {"device", r.device},
           {"precision", r.precision},
           {"torch", r.torch},
           {"threads", r.threads},
           {"clock", r.processor_time ? "processor" : "wall"},
           {"matrix_flops_per_second", r.matrix_rate},
           {"copy_bytes_per_second", r.copy_rate},
           {"cases", Json::array()},
           {"growth", Json::array()},
           {"variants", Json::array()}};
  for (const BenchRow& row : r.rows)
    out["cases"].push_back({{"case", row.name},
                            {"ours_ms", number(row.ours)},
                            {"eager_ms", number(row.eager)},
                            {"best_ms", number(row.best)},
                            {"limit_ms", number(row.limit)},
                            {"flops", row.flops},
                            {"bytes", row.bytes},
                            {"limit_by", row.by_bytes ? "bytes" : "flops"},
                            {"ours_over_eager", number(row.ours / row.eager)},
                            {"ours_over_best", number(row.ours / row.best)},
                            {"ours_over_limit", number(row.ours / row.limit)},
                            {"error", number(row.error)},
                            {"torch_error", number(row.plain_error)},
                            {"fault", row.fault.empty() ? Json(nullptr) : Json(row.fault)}});
  for (const GrowthCurve& c : r.growth)
    out["growth"].push_back({{"axis", c.axis},
                             {"values", c.values},
                             {"ms_per_step", c.milliseconds},
                             {"slope", number(c.slope)},
                             {"flops_slope", number(c.flops_slope)}});
  const auto numbers = [&](const std::vector<double>& all) {
    Json list = Json::array();
    for (const double x : all) list.push_back(number(x));
    return list;
  };
  for (const VariantCurve& c : r.variants)
    out["variants"].push_back({{"form", c.form},
                               {"direction", c.backward ? "back" : "forth"},
                               {"heads", c.heads},
                               {"width", c.width},
                               {"tokens", c.tokens},
                               {"ours_ms", numbers(c.ours)},
                               {"composed_ms", numbers(c.composed)},
                               {"softmax_ms", numbers(c.softmax)},
                               {"limit_ms", numbers(c.limit)},
                               {"slope", number(c.slope)},
                               {"crossover_tokens", number(c.crossover)},
                               {"state_rows", c.state_rows},
                               {"share_of_rate", number(c.share)},
                               {"softmax_share_of_rate", number(c.softmax_share)},
                               {"error", number(c.error)},
                               {"composed_error", number(c.composed_error)},
                               {"fault", c.fault.empty() ? Json(nullptr) : Json(c.fault)}});
  return out;
}

int run_bench(const BenchOptions& o, Io& io) {
  if (!o.out.empty()) require_writable(o.out);  // before the work, not after it
  BenchResult result;
  {
    Progress line(io.err, progress_wanted(io.quiet));
    result = engine().bench(o.request, [&](int64_t done, int64_t total, const std::string& what) {
      line.update(done, std::max<int64_t>(total, 1), what);
    });
  }
  if (!o.out.empty()) {
    const ResultFolder folder(o.out);
    write_file(std::filesystem::path(o.out) / "bench.json", bench_json(result, io).dump(2) + "\n");
  }
  if (o.json) {
    io.out << bench_json(result, io).dump(2) << '\n';
  } else {
    const TerminalStyle style = terminal_style(STDOUT_FILENO);
    print_rates(result, io.out);
    if (o.request.growth) print_growth(result, style, io.out);
    if (!result.rows.empty()) print_rows(result, style, io.out);
    print_variants(result, style, io.out);
  }
  if (!o.out.empty() && !io.quiet) io.err << fmt::format("wrote {}/bench.json\n", printable(o.out, 400));
  const auto faulty = [](const auto& measured) { return !measured.fault.empty(); };
  return std::any_of(result.rows.begin(), result.rows.end(), faulty) ||
                 std::any_of(result.variants.begin(), result.variants.end(), faulty)
             ? 1
             : 0;
}

std::function<int(Io&)> prepare_bench(CLI::App& app) {
  auto o = std::make_shared<BenchOptions>();
  BenchRequest& r = o->request;
  app.add_option("--device", r.device, "cpu, cuda or cuda:N")->type_name("NAME")->capture_default_str();
  app.add_option("--threads", r.threads, "CPU threads, 0 for all cores")
      ->check(whole_number(0, 1024))
      ->capture_default_str();
  app.add_option("--precision", r.precision, "Of products on CUDA, for all sides: fp32 or tf32")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--case", r.cases, "Only cases with this in their name; may be repeated")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--quick", r.quick, "A batch of 32 and short rounds: seconds instead of minutes, more noise");
  app.add_flag("--growth", r.growth, "How our step's time grows with tokens, width, heads and stack size");
  app.add_flag("--processor-time", r.processor_time,
               "Count processor time, of all threads together: for a machine that does other work, too");
  app.add_option("--out", o->out, "Folder for bench.json")->check(some_name())->type_name("FOLDER");
  app.add_flag("--json", o->json, "One JSON object instead of a table");
  app.footer(kBelowBench + std::string("\n") + app.get_footer());
  return [o](Io& io) { return run_bench(*o, io); };
}

}  // namespace

extern const Command command_bench{
    .name = "bench",
    .summary = "Time training beside LibTorch and beside what the machine could do, in one table",
    .examples = {"rankscope bench", "rankscope bench --device cuda --case W=64",
                 "rankscope bench --quick --case attention", "rankscope bench --case variants",
                 "rankscope bench --growth --case tokens --json"},
    .prepare = prepare_bench};

}  // namespace rankscope
