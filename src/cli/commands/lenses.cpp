// rankscope lenses: what can be measured, what each metric means, what it costs; and what of a model can be
// looked at.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "base/json.h"
#include "cli/builtin.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/model_folder.h"

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
  out << "Costs are shares of a plain forward pass at T = 128 tokens. With the length they grow\n"
         "  as T for what reads tokens, as T^2 for what reads patterns or scores,\n"
         "  one power more where singular values are taken (of tokens up to the width of the model,\n"
         "  of patterns up to 512 tokens, then of sampled rows), and not at all for weights.\n";
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

std::string promises(const AttentionInfo& a) {
  return fmt::format("{}; {}; {}", a.rows_sum_to_one ? "rows sum to one" : "rows do not sum to one",
                     a.shares ? "entries are shares" : "entries are no shares",
                     a.only_causal     ? "always causal"
                     : a.may_be_causal ? "may be causal"
                                       : "never causal");
}

void print_attention(std::ostream& out) {
  for (const AttentionInfo& a : engine().attention()) {
    out << fmt::format("{}: {}\n  {}\n", a.name, a.summary, promises(a));
    if (!a.rank_law.empty()) out << fmt::format("  rank {}\n", a.rank_law);
    for (const AttentionInfo::Option& o : a.options)
      out << fmt::format("  {}={}  {} ({})\n", o.name, o.otherwise, o.meaning, o.values);
    out << "\n";
  }
}

void print_attention_json(std::ostream& out) {
  Json list = Json::array();
  for (const AttentionInfo& a : engine().attention()) {
    Json options = Json::array();
    for (const AttentionInfo::Option& o : a.options)
      options.push_back(
          {{"name", o.name}, {"default", o.otherwise}, {"values", o.values}, {"meaning", o.meaning}});
    list.push_back({{"name", a.name},
                    {"summary", a.summary},
                    {"rank_law", a.rank_law},
                    {"rows_sum_to_one", a.rows_sum_to_one},
                    {"shares", a.shares},
                    {"may_be_causal", a.may_be_causal},
                    {"only_causal", a.only_causal},
                    {"options", options}});
  }
  out << list.dump(2) << "\n";
}

// "0-3,5"
std::string ranges(const std::vector<int64_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    out += fmt::format("{}{}", out.empty() ? "" : ",", numbers[i]);
    if (last > i) out += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return out;
}

void print_sites(std::ostream& out, const std::vector<SiteLine>& sites) {
  for (const SiteLine& s : sites) {
    out << fmt::format("{:<26} {}, {}\n", s.name, s.shape, s.form);
    out << fmt::format("  {}{}\n", s.meaning,
                       s.blocks.empty() ? "" : fmt::format(" (blocks {})", ranges(s.blocks)));
    out << fmt::format("  read by {}\n",
                       s.lenses.empty() ? "no lens" : fmt::format("{}", fmt::join(s.lenses, ", ")));
  }
}

void print_sites_json(std::ostream& out, const std::vector<SiteLine>& sites) {
  Json list = Json::array();
  for (const SiteLine& s : sites)
    list.push_back({{"name", s.name},
                    {"shape", s.shape},
                    {"form", s.form},
                    {"meaning", s.meaning},
                    {"blocks", s.blocks},
                    {"lenses", s.lenses}});
  out << list.dump(2) << "\n";
}

struct LensOptions {
  bool json = false, attention = false;
  std::string model;
};

std::function<int(Io&)> prepare_lenses(CLI::App& app) {
  auto o = std::make_shared<LensOptions>();
  app.add_flag("--json", o->json, "One JSON array instead of text");
  CLI::Option* const sites =
      app.add_option(
             "--sites", o->model,
             "Instead: what of a model (none: the built-in one) can be looked at, and which lenses do")
          ->expected(0, 1)
          ->type_name("FOLDER");
  app.add_flag("--attention", o->attention,
               "Instead: the kinds of attention, for studies and --replace, with options and promises")
      ->excludes(sites);
  return [o, sites](Io& io) {
    if (sites->count() > 0) {
      const std::vector<SiteLine> list =
          engine().sites(o->model.empty() ? builtin_model() : model_folder(o->model, io));
      o->json ? print_sites_json(io.out, list) : print_sites(io.out, list);
    } else if (o->attention) {
      o->json ? print_attention_json(io.out) : print_attention(io.out);
    } else {
      o->json ? print_json(io.out) : print_table(io.out);
    }
    return 0;
  };
}

}  // namespace

extern const Command command_lenses{
    .name = "lenses",
    .summary = "List what can be measured, what each metric means and what it costs",
    .examples = {"rankscope lenses", "rankscope lenses --json", "rankscope lenses --sites bert/",
                 "rankscope lenses --attention"},
    .prepare = prepare_lenses};

}  // namespace rankscope
