// rankscope lenses: what can be measured, what each metric means, what it costs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/engine.h"

namespace rankscope {
namespace {

void print_table(std::ostream& out) {
  for (const LensInfo& lens : engine().lenses()) {
    out << fmt::format("{}: {}{}\n  cost: {}\n", lens.name, lens.summary,
                       lens.on_request ? " (only when --lens names it)" : "", lens.cost);
    for (const LensInfo::Metric& m : lens.metrics)
      out << fmt::format("  {:<36} {}\n{:39}{}\n", m.name, m.formula, "", m.meaning);
    out << "\n";
  }
}

void print_json(std::ostream& out) {
  Json list = Json::array();
  for (const LensInfo& lens : engine().lenses()) {
    Json metrics = Json::array();
    for (const LensInfo::Metric& m : lens.metrics)
      metrics.push_back({{"name", m.name}, {"formula", m.formula}, {"meaning", m.meaning}, {"mean", m.mean}});
    list.push_back({{"name", lens.name},
                    {"summary", lens.summary},
                    {"cost", lens.cost},
                    {"on_request", lens.on_request},
                    {"metrics", metrics}});
  }
  out << list.dump(2) << "\n";
}

std::function<int(Io&)> prepare(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "One JSON array instead of text");
  return [json](Io& io) {
    *json ? print_json(io.out) : print_table(io.out);
    return 0;
  };
}

}  // namespace

extern const Command command_lenses{
    .name = "lenses",
    .summary = "List what can be measured, what each metric means and what it costs",
    .examples = {"rankscope lenses", "rankscope lenses --json"},
    .prepare = prepare};

}  // namespace rankscope
