// rankscope choose: how many heads for a Transformer of this size.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "report/text.h"
#include "studies/choice.h"

namespace rankscope {
namespace {

struct ChooseOptions {
  TransformerSize size;
  std::vector<int64_t> heads;
  bool json = false;
};

std::string scaled(double value) {
  constexpr const char* units[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.4g}{}", value, units[unit]);
}

void print_choose(const HeadChoices& result, std::ostream& out) {
  out << fmt::format("{:>6} {:>6} {:>11} {:>11} {:>9} {:>8} {:>16}\n", "heads", "rank", "parameters",
                     "FLOP/token", "KV/token", "bound", "proxy (95 %)");
  for (const HeadChoice& c : result.choices) {
    const std::string proxy = !c.proxy ? "-"
                                       : fmt::format("{}{:.3f} +- {:.3f}", c.proxy->between ? "~" : "",
                                                     c.proxy->mean, c.proxy->half);
    out << fmt::format("{:>6} {:>6} {:>11} {:>11} {:>9} {:>8.4f} {:>16}\n", c.heads, c.rank,
                       scaled(c.parameters), scaled(c.flops), scaled(c.kv_bytes) + "B", c.bound, proxy);
  }
  const auto between = [](const HeadChoice& c) { return c.proxy && c.proxy->between; };
  if (std::any_of(result.choices.begin(), result.choices.end(), between))
    out << "~ not trained: interpolated, in the logarithm of the rank, between the nearest\n"
           "  ranks that were; +- reaches to the far ends of both\n";
  if (!result.remarks.empty()) out << '\n';
  for (const std::string& remark : result.remarks)
    for (const std::string& line : wrap(remark, 80)) out << line << '\n';
}

Json choose_json(const HeadChoices& result) {
  Json out = {{"choices", Json::array()}, {"remarks", result.remarks}};
  for (const HeadChoice& c : result.choices) {
    Json row = {{"heads", c.heads},
                {"rank", c.rank},
                {"parameters", c.parameters},
                {"flops_per_token", c.flops},
                {"kv_bytes_per_token", c.kv_bytes},
                {"lower_bound", c.bound},
                {"proxy_error", nullptr}};
    if (c.proxy) {
      row["proxy_error"] = c.proxy->mean;
      row["proxy_half_width_95"] = c.proxy->half;
      row["proxy_seeds"] = c.proxy->seeds;
      row["proxy_interpolated"] = c.proxy->between;
    }
    out["choices"].push_back(std::move(row));
  }
  return out;
}

std::function<int(Io&)> prepare_choose(CLI::App& app) {
  auto o = std::make_shared<ChooseOptions>();
  app.add_option("--width", o->size.width, "Width of the residual stream")
      ->required()
      ->check(whole_number(2, 1 << 16));
  app.add_option("--layers", o->size.layers, "Blocks")->required()->check(whole_number(1, 1 << 16));
  add_list(app, "--heads", o->heads, "The choices, with commas", whole_number(1, 1 << 16))
      ->required()
      ->type_name("H[,H...]");
  app.add_option("--mlp", o->size.mlp, "Hidden width of the MLP; four times the width when left out")
      ->check(whole_number(1, 1 << 24));
  app.add_option("--context", o->size.context, "Tokens a query sees")
      ->check(whole_number(1))
      ->capture_default_str();
  app.add_option("--kv-heads", o->size.kv_heads, "Heads of keys and values, for grouped queries")
      ->check(whole_number(1, 1 << 16));
  app.add_option("--kv-bytes", o->size.kv_bytes, "Bytes of a number in the cache")
      ->check(whole_number(1, 8))
      ->capture_default_str();
  app.add_flag("--json", o->json, "The same as JSON");
  return [o](Io& io) {
    const HeadChoices result = choose_heads(o->size, o->heads);
    if (o->json) {
      io.out << choose_json(result).dump(2) << '\n';
    } else {
      print_choose(result, io.out);
    }
    return 0;
  };
}

}  // namespace

extern const Command command_choose{
    .name = "choose",
    .summary = "How many heads: cost, bound and trained error of each choice",
    .examples = {"rankscope choose --width 1024 --layers 24 --heads 4,8,16,32",
                 "rankscope choose --width 4096 --layers 32 --heads 32,64 --kv-heads 8 --json"},
    .prepare = prepare_choose};

}  // namespace rankscope
