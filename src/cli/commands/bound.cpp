// rankscope bound: what is known about a layer before it is trained.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>

#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "report/text.h"
#include "theory/certificate.h"
#include "theory/composition.h"

namespace rankscope {
namespace {

using Fields = nlohmann::ordered_json;

struct BoundOptions {
  LayerQuestion question;
  std::string heads, target = "nearest", points;  // no points: those of the target
  int64_t composition = 0;                        // functions; 0: the question is about a layer
  double message = 0;                             // bits
  bool json = false;
};

double parse_heads(const std::string& text) {
  double value = 0;
  if (!parse_not_negative(text, value))
    throw usage_error(fmt::format("expected a number of heads, but got \"{}\"", printable(text)))
        .in("--heads");
  return value;
}

std::string one_of(const char* option, const char* what, const std::string& text,
                   const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), text) != known.end()) return text;
  throw usage_error(unknown_name(what, text, known).message())
      .in(option)
      .hint(fmt::format("{}", fmt::join(known, ", ")));
}

Neighbour parse_neighbour(const BoundOptions& o) {
  const std::string target = one_of("--target", "target", o.target, {"nearest", "farthest"});
  const std::string points =
      o.points.empty() ? "" : one_of("--points", "kind of points", o.points, {"orthonormal", "independent"});
  if (target == "nearest")
    return points == "independent" ? Neighbour::nearest_of_independent : Neighbour::nearest;
  if (points == "orthonormal")
    throw usage_error("orthonormal points are equally far from each other: none is the farthest")
        .in("--points")
        .hint("--points independent, or --target nearest");
  return Neighbour::farthest;
}

// 64, 1000000, 1e+60: whole numbers as far as a double holds each of them.
std::string count_text(double count) {
  return count < 1e15 ? fmt::format("{:.0f}", count) : fmt::format("{:g}", count);
}

std::string power_text(double log10_heads) {
  if (log10_heads < 6) return fmt::format("{:.0f}", std::ceil(std::pow(10, log10_heads) - 1e-9));
  return fmt::format("10^{:.1f}", log10_heads);
}

class Page {
 public:
  explicit Page(std::ostream& out) : out_(out) {}
  void line(std::string_view name, const std::string& value, const std::string& meaning) {
    constexpr int kNames = 16, kValues = 10, kWidth = 80;
    std::string left = pad_right(name, kNames) + pad_right(value, kValues);
    if (name.size() >= kNames) {  // a line of its own, whole
      out_ << name << '\n';
      return line("", value, meaning);
    }
    if (value.size() >= kValues) {  // a line of its own, whole
      out_ << pad_right(name, kNames) << value << '\n';
      left = std::string(kNames + kValues, ' ');
    }
    for (const std::string& text : wrap(meaning, kWidth - kNames - kValues)) {
      out_ << left << text << '\n';
      left = std::string(kNames + kValues, ' ');
    }
  }

 private:
  std::ostream& out_;
};

std::string plural(double count) { return count == 1 ? "" : "s"; }

void print_bound(const Certificate& c, std::ostream& out) {
  const LayerQuestion& q = c.question;
  const std::string heads = fmt::format("{} head{} of rank {}", count_text(q.heads), plural(q.heads), q.rank);
  out << fmt::format("{} in {} dimensions, the {} of {}{} points\n\n", heads, q.d, target_of(q.target), q.n,
                     q.target == Neighbour::nearest_of_independent ? " independent" : "");
  Page page(out);
  const auto number = [](double value) {
    return value >= 1e-3 || value == 0 ? fmt::format("{:.4f}", value) : fmt::format("{:.2g}", value);
  };
  if (c.lower_bound) {
    page.line("lower bound", number(*c.lower_bound),
              c.full_rank ? "Full rank: there is no bound, and one head suffices when its scores are large."
                          : fmt::format("No layer of {} has a smaller mean squared error, whatever its heads "
                                        "compute and however large their weights are.",
                                        heads));
    page.line("plateau", number(*c.plateau),
              "What is left when the part that is linear in the query is learned, and nothing else.");
  }
  page.line("no selection", number(c.no_selection_floor),
            c.no_selection_floor > 0
                ? "What comes without looking at scores at all: a trained value here is no better than that."
                : "The farther of two points is the other one: nothing has to be selected.");
  page.line("temperature", number(c.temperature_coefficient),
            "Divide it by the inverse temperature, where that is large: the error of one full-rank head with "
            "that score scale.");
  if (c.vote_error)
    page.line("vote", number(*c.vote_error),
              fmt::format("Two layers instead: {} random rank-1 head{} and a majority vote.",
                          count_text(q.heads), plural(q.heads)));
  if (c.lower_bound && !c.full_rank) {
    for (const HeadsNeeded& need : c.heads_needed)
      page.line(fmt::format("heads for {}", need.error), power_text(need.log10_heads),
                q.n == 2 ? fmt::format("Fewer heads of rank {} cannot reach that error.", q.rank)
                         : fmt::format("Fewer heads of rank {} cannot reach that error; degrees from {} on "
                                       "count with the share of the first of them.",
                                       q.rank, c.energies.size()));
    if (q.n == 2)
      page.line(
          "energy", number(c.eta.front() / 2),
          fmt::format("Of the target in degree 1; in degrees 3, 5, 7, 9: {:.4f}, {:.4f}, {:.4f}, {:.4f}.",
                      c.eta[1] / 2, c.eta[2] / 2, c.eta[3] / 2, c.eta[4] / 2));
    else {
      std::string degrees = "0", energies = fmt::format("{:.4f}", c.energies[0]);
      for (size_t l = 2; l < std::min<size_t>(5, c.energies.size()); ++l) {
        degrees += fmt::format(", {}", l);
        energies += fmt::format(", {:.4f}", c.energies[l]);
      }
      page.line("energy", number(c.energies[1]),
                fmt::format("Of the target in degree 1; in degrees {}: {}.", degrees, energies));
    }
  }
  page.line("applies", "", c.applies + ".");
}

/// W_l of docs/BOUND.md in degrees 0, 1, ...; of two points half of the sign's energy, in odd degrees alone.
std::vector<double> energies_of(const Certificate& c) {
  if (c.question.n != 2 || !c.lower_bound) return c.energies;
  std::vector<double> out{0.5};
  for (const double sign : c.eta) out.insert(out.end(), {sign / 2, 0});
  out.pop_back();
  return out;
}

Fields bound_json(const Certificate& c) {
  const LayerQuestion& q = c.question;
  const auto maybe = [](const std::optional<double>& value) {
    return value ? Fields(*value) : Fields(nullptr);
  };
  Fields json{{"d", q.d},
              {"rank", q.rank},
              {"heads", q.heads},
              {"n", q.n},
              {"target", target_of(q.target)},
              {"points", points_of(q.target)},
              {"full_rank", c.full_rank},
              {"lower_bound", maybe(c.lower_bound)},
              {"lower_bound_error", maybe(c.bound_error)},
              {"plateau", maybe(c.plateau)},
              {"no_selection_floor", c.no_selection_floor},
              {"temperature_coefficient", c.temperature_coefficient},
              {"vote_error", maybe(c.vote_error)},
              {"energies", energies_of(c)},
              {"heads_needed", Fields::array()},
              {"applies", c.applies}};
  for (const HeadsNeeded& need : c.heads_needed)
    json["heads_needed"].push_back({{"error", need.error}, {"log10_heads", need.log10_heads}});
  return json;
}

// From how many tokens on it is proven that too few full layers cannot compose functions.
void print_composition(const BoundOptions& o, bool n_given, Io& io) {
  const double bits = std::log2(o.message), hybrids = log2_tokens_hybrids_fail(bits, o.composition),
               full = log2_tokens_full_layers_fail(bits, o.composition);
  const bool vacuous = std::log2(static_cast<double>(o.question.n)) < hybrids;
  if (o.json) {
    Fields json{{"functions", o.composition},
                {"message_bits", o.message},
                {"log2_tokens_hybrids_fail", hybrids},
                {"log2_tokens_full_layers_fail", full}};
    if (n_given) json["n"] = o.question.n, json["vacuous"] = vacuous;
    io.out << json.dump(2) << '\n';
    return;
  }
  const auto counted = [](int64_t n, const char* what) { return fmt::format("{} {}{}", n, what, plural(n)); };
  io.out << fmt::format("{} composed, messages of {:g} bits\n\n", counted(o.composition, "function"),
                        o.message);
  Page page(io.out);
  page.line(
      "hybrids fail", fmt::format("2^{:g}", hybrids),
      fmt::format("From so many tokens on, {} and 2^{} that keep a state cannot compose them (Ye et al. "
                  "2026).",
                  counted(o.composition - 1, "full layer"), 3 * o.composition * o.composition));
  page.line("full fail", fmt::format("2^{:g}", full),
            fmt::format("From so many tokens on, {} cannot (Chen et al. 2024).",
                        counted(o.composition, "full layer")));
  if (n_given)
    page.line(fmt::format("n = {}", o.question.n), vacuous ? "vacuous" : "speaks",
              vacuous ? "At this length the theorem about hybrids says nothing."
                      : "At this length the theorem about hybrids holds.");
  page.line("applies", "",
            "to messages of heads times width times bits of a number, and to the worst tables there are.");
}

std::function<int(Io&)> prepare_bound(CLI::App& app) {
  const auto options = std::make_shared<BoundOptions>();
  const std::vector<CLI::Option*> needed{
      app.add_option("--d", options->question.d, "Width of the points")->check(whole_number(2)),
      app.add_option("--rank", options->question.rank, "Dimensions of a head's queries and keys")
          ->check(whole_number(1)),
      app.add_option("--heads", options->heads, "Heads of the layer; 1e6 is a number too")};
  const CLI::Option* n =
      app.add_option("--n", options->question.n, "Points to choose from, or tokens of --composition")
          ->check(whole_number(2))
          ->capture_default_str();
  CLI::Option* target =
      app.add_option("--target", options->target,
                     "nearest: to a query of its own, whose farthest has the same numbers; farthest: "
                     "self-attention")
          ->capture_default_str();
  CLI::Option* points =
      app.add_option("--points", options->points,
                     "Of the nearest: orthonormal, or independent and uniform on the sphere, as those of the "
                     "farthest are")
          ->type_name("NAME");
  app.add_option("--composition", options->composition,
                 "Another question: from how many tokens on are so many functions too many to compose?")
      ->check(whole_number(1));
  const CLI::Option* message =
      app.add_option("--message", options->message, "Bits: heads times width times bits of a number")
          ->default_val(1024)
          ->check(number_from(2, 1e300));
  app.add_flag("--json", options->json, "One JSON object instead of lines");
  std::vector<CLI::Option*> of_layer = needed;
  of_layer.insert(of_layer.end(), {target, points});
  return [options, needed, of_layer, n, message](Io& io) {
    if (options->composition > 0) {
      for (const CLI::Option* o : of_layer)
        if (o->count() > 0)
          throw usage_error(
              fmt::format("{} is of a layer, and --composition of whole networks", o->get_name()))
              .hint("rankscope bound --help");
      if (options->composition > 100) throw usage_error("expected at most 100 functions").in("--composition");
      print_composition(*options, n->count() > 0, io);
      return 0;
    }
    for (const CLI::Option* o : needed)
      if (o->count() == 0)
        throw usage_error(fmt::format("{} is required", o->get_name())).hint("rankscope bound --help");
    if (message->count() > 0)
      throw usage_error("--message is of --composition")
          .hint("rankscope bound --composition 2 --message 1024");
    LayerQuestion question = options->question;
    question.heads = parse_heads(options->heads);
    question.target = parse_neighbour(*options);
    const Certificate certificate = certify(question);
    if (options->json)
      io.out << bound_json(certificate).dump(2) << '\n';
    else
      print_bound(certificate, io.out);
    return 0;
  };
}

}  // namespace

extern const Command command_bound{
    .name = "bound",
    .summary = "Say what heads of a given rank can reach at best, without training",
    .examples = {"rankscope bound --d 64 --rank 8 --heads 64",
                 "rankscope bound --d 64 --rank 1 --heads 1e6 --json",
                 "rankscope bound --d 64 --rank 8 --heads 8 --n 16",
                 "rankscope bound --d 64 --rank 8 --heads 8 --n 16 --points independent",
                 "rankscope bound --d 64 --rank 8 --heads 8 --n 16 --target farthest",
                 "rankscope bound --composition 2 --message 1024 --n 100000"},
    .prepare = prepare_bound};

}  // namespace rankscope
