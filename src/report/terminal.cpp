#include "report/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <string_view>

#include "report/profile.h"
#include "report/text.h"

namespace rankscope {
namespace {

constexpr size_t kMostAblations = 12;  // single heads taken out: more lines than this say little

struct Column {
  const char* title;
  double LayerNumbers::*number;
};
constexpr std::array<Column, 6> kColumns{{{"residual", &LayerNumbers::residual},
                                          {"eff.rank", &LayerNumbers::rank},
                                          {"cosine", &LayerNumbers::cosine},
                                          {"entropy", &LayerNumbers::entropy},
                                          {"sinks", &LayerNumbers::sinks},
                                          {"massive", &LayerNumbers::massive}}};

class Page {
 public:
  Page(const TerminalStyle& style, std::ostream& out) : style_(style), out_(out) {
    style_.width = std::max(style_.width, 20);
  }

  int width() const { return style_.width; }
  const TerminalStyle& style() const { return style_; }
  void line(std::string_view text = {}) { out_ << fit(text, style_.width) << '\n'; }
  void heading(std::string_view text) { painted("1", fit(text, style_.width)); }
  void quiet(std::string_view text) { painted("2", fit(text, style_.width)); }

  /// A label, then text wrapped beside it.
  void labelled(std::string_view label, std::string_view text, int label_width, bool dim) {
    const int indent = std::min(label_width, style_.width / 2);
    bool first = true;
    for (const std::string& piece : wrap(text, style_.width - indent)) {
      const std::string whole = pad_right(first ? label : "", indent) + piece;
      first = false;
      dim ? quiet(whole) : line(whole);
    }
  }

 private:
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
  return p.variant.starts_with("-head:") || p.variant.starts_with("-heads:");
}

std::vector<double> residuals(const VariantProfile& p) {
  std::vector<double> out;
  for (const LayerNumbers& l : p.layers)
    if (!std::isnan(l.residual)) out.push_back(l.residual);
  return out;
}

void print_layers(const VariantProfile& p, Page& page) {
  std::vector<Column> columns;  // what was not measured takes no room
  for (const Column& c : kColumns)
    if (std::any_of(p.layers.begin(), p.layers.end(),
                    [&](const LayerNumbers& l) { return !std::isnan(l.*c.number); }))
      columns.push_back(c);
  if (columns.empty()) return;

  const auto row = [&](std::string_view label, const auto& cell) {
    std::string line = pad_right(label, 6);
    for (const Column& c : columns) line += ' ' + pad_left(cell(c), 9);
    return line;
  };
  std::string title = terminal_text(p.variant, 40);
  if (const auto curve = residuals(p); !curve.empty())
    title += fmt::format("  {}  content tokens at {}, {} samples", sparkline(curve, 16, page.style().unicode),
                         p.pre_norm ? "ln1.hook_normalized" : "hook_resid_post", p.samples);
  page.heading(title);
  page.quiet(row("layer", [](const Column& c) { return std::string(c.title); }));
  for (const LayerNumbers& l : p.layers)
    page.line(row(l.label, [&](const Column& c) { return number_text(l.*c.number); }));
  page.line();
}

void print_variants(const std::vector<VariantProfile>& all, Page& page) {
  if (all.size() < 2) return;
  size_t longest = 7;
  for (const VariantProfile& p : all) longest = std::max(longest, p.variant.size());
  const int name = std::min(static_cast<int>(longest), page.width() / 3);
  const int curve = std::clamp(page.width() - name - 35, 0, 24);
  const auto row = [&](std::string_view variant, std::string_view kl, std::string_view line,
                       std::string_view first, std::string_view last) {
    return pad_right(variant, name) + ' ' + pad_left(kl, 9) + "  " + pad_right(line, curve) +
           pad_left(first, 10) + ' ' + pad_left(last, 9);
  };
  page.heading("variants side by side");
  page.quiet(row("variant", "output_kl", "residual", "first", "last"));
  size_t ablations = 0;
  for (const VariantProfile& p : all) {
    if (is_ablation(p) && ++ablations > kMostAblations) continue;
    const auto values = residuals(p);
    page.line(row(terminal_text(p.variant), number_text(p.output_kl),
                  sparkline(values, curve, page.style().unicode),
                  number_text(values.empty() ? kNone : values.front()),
                  number_text(values.empty() ? kNone : values.back())));
  }
  if (ablations > kMostAblations)
    page.quiet(fmt::format("... and {} more heads taken out: see --out", ablations - kMostAblations));
  page.line();
}

void print_verdict(const Results& results, Page& page) {
  if (!results.verdict.empty()) page.heading("verdict");
  for (const Sentence& s : results.verdict)
    page.labelled((s.known ? "  " : "? ") + terminal_text(s.topic, 40), terminal_text(s.text), 12, !s.known);
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
  const std::vector<VariantProfile> all = profiles(results.table);
  for (const VariantProfile& p : all)
    if (!is_ablation(p)) print_layers(p, page);
  print_variants(all, page);
  print_verdict(results, page);
}

}  // namespace rankscope
