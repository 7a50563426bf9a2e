#include "report/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <ostream>
#include <span>
#include <string_view>

#include "report/head_cells.h"
#include "report/loss_line.h"
#include "report/plot.h"
#include "report/profile.h"
#include "report/text.h"

namespace rankscope {
namespace {

constexpr size_t kMostCurves = 6;  // in one picture
constexpr int kPlotRows = 10;
constexpr double kLogFrom = 5;         // a range that large is drawn on a logarithmic axis
constexpr double kSinkMargin = 3;      // nats, where the manifest does not say
constexpr int kCurveWidth = 24;        // of a residual beside its variant, at most
constexpr int kNumbersWidth = 35;      // of the numbers beside it and the gaps between them
constexpr int kLayerLabel = 6;         // of a layer in its table
constexpr int kLayerCell = 9;          // of a number there
constexpr size_t kMostAblations = 12;  // single heads taken out: more lines than this say little

struct Column {
  const char* title;
  double LayerNumbers::*number;
  bool of_tokens;  // read at the site the heading names
  const char* meaning;
};
constexpr std::array<Column, 7> kColumns{
    {{"residual", &LayerNumbers::residual, true,
      "what tells the tokens apart, as a share of their size (0: all alike)"},
     {"eff.rank", &LayerNumbers::rank, true, "share of the rank there could be"},
     {"cosine", &LayerNumbers::cosine, true, "mean over pairs of tokens"},
     {"entropy", &LayerNumbers::entropy, false, "of attention, mean over heads (1: uniform)"},
     {"sinks", &LayerNumbers::sinks, false, "share of the layer's heads, by margin"},
     {"massive", &LayerNumbers::massive, false, "largest activation over the median, after the layer"},
     {"attn.rank", &LayerNumbers::attention_rank, false,
      "of attention, mean over heads / the most its kind allows"}}};

std::string cell_text(const LayerNumbers& l, const Column& c) {
  const std::string number = number_text(l.*c.number);
  if (c.number != &LayerNumbers::attention_rank || std::isnan(l.attention_rank)) return number;
  return fmt::format("{}/{}", number, number_text(l.rank_ceiling));
}

class Page {
 public:
  Page(const TerminalStyle& style, std::ostream& out) : style_(style), out_(out) {
    style_.width = std::max(style_.width, 20);
  }

  int width() const { return style_.width; }
  const TerminalStyle& style() const { return style_; }
  void line(std::string_view text = {}) { out_ << fit(known(text), style_.width) << '\n'; }
  void heading(std::string_view text) { painted("1", fit(known(text), style_.width)); }
  void quiet(std::string_view text) { painted("2", fit(known(text), style_.width)); }

  /// A label, then text wrapped beside it.
  void labelled(std::string_view label, std::string_view text, int label_width, bool dim) {
    const int indent = std::min(label_width, style_.width / 2);
    bool first = true;
    for (const std::string& piece : wrap(known(text), style_.width - indent)) {
      const std::string whole = pad_right(first ? label : "", indent) + piece;
      first = false;
      dim ? quiet(whole) : line(whole);
    }
  }

 private:
  // In characters that the terminal knows: sentences have one that not all do.
  std::string known(std::string_view text) const {
    constexpr std::string_view kSign = "±";
    std::string out(text);
    if (style_.unicode) return out;
    for (size_t at = out.find(kSign); at != std::string::npos; at = out.find(kSign, at))
      out.replace(at, kSign.size(), "+-");
    return out;
  }

  void painted(const char* code, std::string_view text) {
    if (style_.colour)
      out_ << "\x1b[" << code << 'm' << text << "\x1b[0m\n";
    else
      out_ << text << '\n';
  }

  TerminalStyle style_;
  std::ostream& out_;
};

bool is_ablation(const VariantProfile& p) {
  return p.variant.starts_with("-head") || p.variant.starts_with("pair:");
}

// What a variant is called where names have `width` columns: two variants are never called alike.
std::map<std::string, std::string> names_within(int width, const std::vector<VariantProfile>& all) {
  std::vector<std::string> names;
  for (const VariantProfile& p : all) names.push_back(terminal_text(p.variant));
  const std::vector<std::string> fitted = short_names(names, width);
  std::map<std::string, std::string> out;
  for (size_t i = 0; i < all.size(); ++i) out[all[i].variant] = fitted[i];
  return out;
}

std::vector<double> residuals(const VariantProfile& p) {
  std::vector<double> out;
  for (const LayerNumbers& l : p.layers)
    if (!std::isnan(l.residual)) out.push_back(l.residual);
  return out;
}

bool measured(const VariantProfile& p, const Column& c) {
  return std::any_of(p.layers.begin(), p.layers.end(),
                     [&](const LayerNumbers& l) { return !std::isnan(l.*c.number); });
}

// What was not measured takes no room.
std::vector<Column> columns_of(const VariantProfile& p) {
  std::vector<Column> columns;
  std::copy_if(kColumns.begin(), kColumns.end(), std::back_inserter(columns),
               [&](const Column& c) { return measured(p, c); });
  return columns;
}

void print_layers(const VariantProfile& p, const std::string& name, Page& page) {
  const std::vector<Column> columns = columns_of(p);
  if (columns.empty()) return;

  std::string title = name;
  if (!p.stream.empty()) title = terminal_text(p.stream, 20) + ": " + title;
  if (const auto curve = residuals(p); !curve.empty())
    title += "  " + sparkline(curve, 16, page.style().unicode);
  std::string where;
  if (std::any_of(columns.begin(), columns.end(), [](const Column& c) { return c.of_tokens; }))
    where = fmt::format("  {} tokens at {}, {} sample{}", p.content ? "content" : "all",
                        !p.pre_norm           ? "hook_resid_post"
                        : p.stream == "cross" ? "ln_cross.hook_normalized"
                                              : "ln1.hook_normalized",
                        p.samples, p.samples == 1 ? "" : "s");
  if (display_width(title + where) <= page.width()) {
    page.heading(title + where);
  } else {
    page.heading(title);
    for (const std::string& piece : wrap(where, page.width() - 2)) page.heading("  " + piece);
  }
  // What does not fit beside the others stands below them.
  const auto room = static_cast<size_t>(std::max(1, (page.width() - kLayerLabel) / (kLayerCell + 1)));
  for (size_t first = 0; first < columns.size(); first += room) {
    const std::span<const Column> some(columns.data() + first, std::min(room, columns.size() - first));
    const auto row = [&](std::string_view label, const auto& cell) {
      std::string line = pad_right(label, kLayerLabel);
      for (const Column& c : some) line += ' ' + pad_left(cell(c), kLayerCell);
      return line;
    };
    page.quiet(row("layer", [](const Column& c) { return std::string(c.title); }));
    for (const LayerNumbers& l : p.layers)
      page.line(row(l.label, [&](const Column& c) { return cell_text(l, c); }));
    page.line();
  }
}

// What the columns mean, once for all tables.
void print_legend(const std::vector<VariantProfile>& all, Page& page) {
  std::string text;
  for (const Column& c : kColumns)
    if (std::any_of(all.begin(), all.end(), [&](const VariantProfile& p) { return measured(p, c); }))
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", c.title, c.meaning);
  if (text.empty() && !all.empty())
    text = "nothing measured here belongs into a table of layers: --format csv prints it, --out keeps it";
  if (text.empty()) return;
  page.labelled("", text, 0, true);
  page.line();
}

// What output_kl counts depends on whether the model has a head.
std::string kl_meaning(const std::vector<VariantProfile>& all) {
  const auto counts = [&](bool nats) {
    return std::any_of(all.begin(), all.end(), [&](const VariantProfile& p) {
      return p.in_nats == nats && !std::isnan(p.output_kl) && p.output_kl != 0;
    });
  };
  const std::string change = "relative change of the last hidden state";
  if (!counts(false)) return "output_kl: divergence of the output from that of full, in nats";
  return counts(true)
             ? "output_kl: divergence from full in nats; where the output heads differ, output_error: " +
                   change
             : "output_kl: here output_error, " + change + ", as there is no output head";
}

void print_variants(std::vector<VariantProfile> all, Page& page) {
  // Pairs of heads and bounds have neither an output nor tokens of their own.
  std::erase_if(all, [](const VariantProfile& p) {
    return p.variant.starts_with("pair:") || p.variant.starts_with("theory");
  });
  if (all.size() < 2) return;
  // The attention to another stream has no tokens and no output of its own.
  const auto none = [&](auto has) { return std::none_of(all.begin(), all.end(), has); };
  const bool no_output = none([](const VariantProfile& p) { return !std::isnan(p.output_kl); });
  if (no_output && none([](const VariantProfile& p) { return !residuals(p).empty(); })) return;
  // Names may take what the curves, a column a layer, leave of the line.
  int points = 8, name = 7;  // the headings
  for (const VariantProfile& p : all) points = std::max(points, static_cast<int>(residuals(p).size()));
  const auto names = names_within(
      std::max(page.width() / 3, page.width() - kNumbersWidth - std::min(points, kCurveWidth)), all);
  for (const auto& [variant, shown] : names) name = std::max(name, display_width(shown));
  const int curve = std::clamp(page.width() - name - kNumbersWidth, 0, kCurveWidth);
  const auto row = [&](std::string_view variant, std::string_view kl, std::string_view line,
                       std::string_view first, std::string_view last) {
    return pad_right(variant, name) + ' ' + pad_left(kl, 9) + "  " + pad_right(line, curve) +
           pad_left(first, 10) + ' ' + pad_left(last, 9);
  };
  page.heading(all.front().stream.empty()
                   ? "variants side by side"
                   : fmt::format("variants side by side: {}", terminal_text(all.front().stream, 20)));
  page.quiet(row("variant", no_output ? "" : "output_kl", "residual", "first", "last"));
  size_t ablations = 0;
  for (const VariantProfile& p : all) {
    if (is_ablation(p) && ++ablations > kMostAblations) continue;
    const auto values = residuals(p);
    page.line(row(names.at(p.variant), number_text(p.output_kl),
                  sparkline(values, curve, page.style().unicode),
                  number_text(values.empty() ? kNone : values.front()),
                  number_text(values.empty() ? kNone : values.back())));
  }
  if (ablations > kMostAblations)
    page.quiet(fmt::format("... and {} more heads taken out: see --out", ablations - kMostAblations));
  if (!no_output) page.labelled("", kl_meaning(all), 0, true);
  page.line();
}

// The residuals of all variants in one picture: where they part is easier seen than read.
void print_curves(const std::vector<VariantProfile>& all, Page& page) {
  const auto names = names_within(kVariantWidth, all);
  std::vector<PlotCurve> curves;
  double least = INFINITY, most = 0;
  for (const VariantProfile& p : all) {
    if (is_ablation(p)) continue;
    PlotCurve curve{.label = names.at(p.variant), .points = {}, .shape = static_cast<int>(curves.size())};
    for (size_t i = 0; i < p.layers.size(); ++i) {
      const double y = p.layers[i].residual;
      if (!(y > 0)) continue;
      curve.points.emplace_back(static_cast<double>(i), y);
      least = std::min(least, y);
      most = std::max(most, y);
    }
    if (curve.points.size() > 1) curves.push_back(std::move(curve));
  }
  if (curves.size() < 2 || curves.size() > kMostCurves) return;
  const bool log = least * kLogFrom < most;
  for (const std::string& text :
       draw_plot(curves, {"depth", "residual", false, log}, page.width(), kPlotRows, page.style().unicode))
    page.line(text);
  page.line();
}

void print_heads(const ResultTable& table, Page& page) {
  const std::vector<std::string> lines = head_cells(table, page.width(), page.style().unicode);
  if (lines.empty()) return;
  page.heading(lines.front());
  for (size_t i = 1; i < lines.size(); ++i) page.line(lines[i]);
  page.line();
}

void print_sentence(const Sentence& s, Page& page) {
  page.labelled((s.known ? "  " : "? ") + terminal_text(s.topic, 40), terminal_text(s.text), 12, !s.known);
}

bool stands_out(const Sentence& s) { return s.known && s.found; }
bool is_normal(const Sentence& s) { return s.known && !s.found && !s.asked; }

// The point of the scan comes before its tables.
void print_headline(const Results& results, Page& page) {
  const auto some = [&](auto is) { return std::any_of(results.verdict.begin(), results.verdict.end(), is); };
  if (!some(stands_out)) {
    if (!some(is_normal)) return;
    const bool open = some([](const Sentence& s) { return !s.known; });
    page.heading(open ? "nothing stands out; what is not known stands below" : "nothing stands out");
    return page.line();
  }
  page.heading("what stands out");
  for (const Sentence& s : results.verdict)
    if (stands_out(s)) print_sentence(s, page);
  page.line();
}

// A sentence up to its numbers; the stream it is about ("encoder: no head ...") stays in front.
std::string without_numbers(const std::string& text) {
  const size_t word = text.find(' ');
  const size_t from = word != std::string::npos && word > 0 && text[word - 1] == ':' ? word : 0;
  return text.substr(0, std::min(text.find(": ", from), text.find("; ", from)));
}

// What is normal is one line: "no QK map is low in rank" without the numbers behind it.
void print_normal(const Results& results, Page& page) {
  std::string text;
  for (const Sentence& s : results.verdict)
    if (is_normal(s)) text += (text.empty() ? "" : "; ") + without_numbers(s.text);
  if (!text.empty()) page.labelled("  normal", terminal_text(text + " (numbers: --out, --json)"), 12, true);
}

void print_verdict(const Results& results, Page& page) {
  if (!results.verdict.empty()) page.heading("verdict");
  print_normal(results, page);
  for (const Sentence& s : results.verdict)
    if (!stands_out(s) && !is_normal(s)) print_sentence(s, page);
  for (const std::string& note : results.notes) page.labelled("  note", terminal_text(note), 12, true);
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool utf8_locale() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!is_set(variable)) continue;
    std::string name = std::getenv(variable);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos;
  }
  return false;
}

/// The threshold the verdict was made with; a manifest without one is older than it, or not of a scan.
double sink_margin_of(const Json& manifest) {
  const auto all = manifest.find("thresholds");
  if (all == manifest.end() || !all->is_object()) return kSinkMargin;
  const auto found = all->find("sink_margin");
  return found != all->end() && found->is_number() ? found->get<double>() : kSinkMargin;
}

}  // namespace

TerminalStyle terminal_style(int descriptor) {
  TerminalStyle style;
  const char* kind = std::getenv("TERM");
  const bool terminal = ::isatty(descriptor) == 1;
  style.colour = terminal && !is_set("NO_COLOR") && (kind == nullptr || std::string_view(kind) != "dumb");
  style.unicode = !terminal || utf8_locale();  // a file is read later, and elsewhere
  winsize size{};
  if (terminal && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.width = std::clamp<int>(size.ws_col, 40, 120);
  return style;
}

void print_results(const Results& results, const TerminalStyle& style, std::ostream& out) {
  Page page(style, out);
  if (const std::string loss = loss_line(results.table); !loss.empty()) {
    page.labelled("loss", loss, 6, false);
    page.line();
  }
  const std::vector<VariantProfile> all = profiles(results.table, sink_margin_of(results.manifest));
  print_headline(results, page);
  std::vector<std::vector<VariantProfile>> streams;  // in the order of the table
  for (const VariantProfile& p : all) {
    const auto same = std::find_if(streams.begin(), streams.end(),
                                   [&](const auto& s) { return s.front().stream == p.stream; });
    same == streams.end() ? streams.push_back({p}) : same->push_back(p);
  }
  const auto names = names_within(kVariantWidth, all);
  for (const std::vector<VariantProfile>& stream : streams)
    for (const VariantProfile& p : stream)
      if (!is_ablation(p)) print_layers(p, names.at(p.variant), page);
  print_legend(all, page);
  for (const std::vector<VariantProfile>& stream : streams) {
    print_variants(stream, page);
    print_curves(stream, page);
  }
  print_heads(results.table, page);
  print_verdict(results, page);
}

}  // namespace rankscope
