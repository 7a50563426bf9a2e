// rankscope operator: the whole network as one linear map.
#include "paths/operator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <ostream>

#include "checkpoint/safetensors.h"
#include "cli/arrays.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/input_options.h"
#include "cli/options.h"
#include "paths/limits.h"
#include "report/columns.h"
#include "report/text.h"

namespace rankscope {
namespace {

constexpr const char* kBelowOperator =
    "With attention matrices, norm statistics and activation gains held at what the input gave, the network "
    "is\n"
    "an affine map: y = T x + b, exactly. It is applied, never formed. With --out the token-to-token maps go "
    "to\n"
    "token_maps.safetensors: sample_N.in holds ||T[i,:,j,:] x_j||, sample_N.in_out its part in the direction "
    "of\n"
    "the predicted word (of the output itself where there is no head). In a masked model the maps go through "
    "the\n"
    "head's own transform, too, held like the rest; singular values and ranks are those of T without it.\n";

constexpr size_t kMostSources = 5;

struct OperatorOptions {
  InputOptions input;
  OperatorRequest request;
  bool no_map = false;
};

std::string operator_cell(const ResultTable& t, const std::string& metric) {
  const Row* r = t.find("full", metric, -1);
  if (r == nullptr) return "-";
  const bool estimated = r->stderr_ > 0;  // by random probes
  return number_text(r->value) + (estimated ? " ± " + number_text(r->stderr_) : "");
}

void print_spectrum(const ResultTable& t, int64_t top, const TerminalStyle& style, std::ostream& out) {
  std::vector<Column> columns{{"", {}}, {"singular value", {}}, {"relative residual", {}}};
  for (int64_t i = 1; i <= top; ++i) {
    if (t.find("full", fmt::format("sigma_{}", i), -1) == nullptr) break;
    columns[0].cells.push_back(std::to_string(i));
    columns[1].cells.push_back(operator_cell(t, fmt::format("sigma_{}", i)));
    columns[2].cells.push_back(operator_cell(t, fmt::format("sigma_{}_residual", i)));
  }
  print_columns(columns, style, out);
}

void print_numbers(const ResultTable& t, const TerminalStyle& style, std::ostream& out) {
  std::vector<Column> columns{{"", {}, true}, {"", {}}};
  const auto add = [&](const char* what, const char* metric) {
    if (operator_cell(t, metric) == "-") return;
    columns[0].cells.emplace_back(what);
    columns[1].cells.push_back(operator_cell(t, metric));
  };
  add("stable rank ||T||_F^2 / sigma_1^2", "operator_stable_rank");
  add("directions used, as a matrix", "participation_matrix");
  add("directions used, output tokens", "participation_token_out");
  add("directions used, output channels", "participation_channel_out");
  add("directions used, input tokens", "participation_token_in");
  add("directions used, input channels", "participation_channel_in");
  add("bias, share of the output", "bias_share");
  add("own token, share of what a token is made of", "map_self");
  add("first token, share of it", "map_first");
  add("effective rank of the token-to-token map", "map_effective_rank");
  add("completeness: largest error of tokens + bias", "completeness");
  add("distance from the Jacobian ||J - T|| / ||J||", "jacobian_distance");
  print_columns(columns, style, out);
}

// What the last token of the first sample is made of.
void print_sources(const std::vector<TokenMap>& maps, std::ostream& out) {
  if (maps.empty()) return;
  const TokenMap& m = maps.front();
  const auto row = static_cast<size_t>((m.tokens - 1) * m.tokens);
  std::vector<size_t> order(static_cast<size_t>(m.tokens));
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::fabs(m.in_out[row + a]) > std::fabs(m.in_out[row + b]);
  });
  out << fmt::format("\nsample {}, last token: made of", m.sample);
  for (size_t i = 0; i < std::min(kMostSources, order.size()); ++i)
    out << fmt::format("{} position {} ({})", i == 0 ? "" : ",", order[i],
                       number_text(m.in_out[row + order[i]]));
  out << '\n';
}

void write_maps(const std::filesystem::path& folder, const std::vector<TokenMap>& maps) {
  std::vector<TensorToWrite> tensors;
  for (const TokenMap& m : maps)
    for (const auto& [name, values] : {std::pair{"in", &m.in}, {"in_out", &m.in_out}})
      tensors.push_back({fmt::format("sample_{}.{}", m.sample, name),
                         StoredType::f64,
                         {m.tokens, m.tokens},
                         std::as_bytes(std::span(*values))});
  write_safetensors(folder / kTokenMapsFile, tensors);
}

int run_operator(OperatorOptions& o, Io& io) {
  fill_in_request(o.input, io);
  o.request.scan = o.input.request;
  o.request.init = o.input.init;
  o.request.scan.show = !o.input.out.empty();
  o.request.map = !o.no_map;
  std::vector<TokenMap> maps;
  return run_and_report(
      o.input, io,
      [&](const ProgressCallback& progress) {
        OperatorResult result = engine().linear_operator(o.request, progress);
        maps = std::move(result.maps);
        return std::move(result.scan);
      },
      [&](const ScanResult& result, std::ostream& out) {
        const TerminalStyle style = terminal_style(STDOUT_FILENO);
        print_spectrum(result.table, o.request.top, style, out);
        print_numbers(result.table, style, out);
        print_sources(maps, out);
        out << '\n';
        print_sentences(result, style, out);
      },
      [&] {
        if (!maps.empty()) write_maps(o.input.out, maps);
      });
}

std::function<int(Io&)> prepare_operator(CLI::App& app) {
  auto o = std::make_shared<OperatorOptions>();
  o->input.request.samples = 1;
  o->input.request.dtype = "float64";
  add_input_options(app, o->input);
  app.add_option("--top", o->request.top, "Singular values")
      ->check(whole_number(kTop.least, kTop.most))
      ->capture_default_str();
  app.add_option("--applications", o->request.applications,
                 "At most this many applications of the operator and its adjoint for them")
      ->check(whole_number(kApplications.least, kApplications.most))
      ->capture_default_str();
  app.add_option("--tolerance", o->request.tolerance, "Relative residual they should have")
      ->check(number_from())
      ->capture_default_str();
  app.add_option("--probes", o->request.probes, "Random vectors behind the ranks of the unfoldings")
      ->check(whole_number(kProbes.least, kProbes.most))
      ->capture_default_str();
  app.add_option("--jacobian", o->request.jacobian_probes,
                 "Random directions behind the distance from the Jacobian, 0 for none")
      ->check(whole_number(kJacobianProbes.least, kJacobianProbes.most))
      ->capture_default_str();
  app.add_flag("--no-map", o->no_map, "Leave the token-to-token map out: it costs one application a token");
  app.add_option("--dtype", o->input.request.dtype, "Arithmetic: float32 or float64")
      ->type_name("TYPE")
      ->capture_default_str();
  app.footer(kBelowOperator + std::string("\n") + app.get_footer());
  return [o](Io& io) { return run_operator(*o, io); };
}

}  // namespace

extern const Command command_operator{
    .name = "operator",
    .summary = "Read the network as one linear map: spectrum, ranks, which token is made of which",
    .examples = {"rankscope operator", "rankscope operator bert/ --text FILE --top 16",
                 "rankscope operator bert/ --text FILE --samples 4 --out out/operator"},
    .prepare = prepare_operator};

}  // namespace rankscope
