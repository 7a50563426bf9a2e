#include "report/loss_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace rankscope {
namespace {

constexpr size_t kMostVariants = 6;  // in one line

std::vector<const Row*> losses(const ResultTable& table) {
  std::vector<const Row*> out;
  for (const Row& r : table.rows)
    if (r.metric == "nll" || r.metric == "pseudo_nll") out.push_back(&r);
  return out;
}

// The digits that the error leaves, three at least.
std::string with_error(const Row& r) {
  if (!std::isfinite(r.stderr_) || r.stderr_ <= 0) return number_text(r.value);
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(r.stderr_))), 0, 6);
  return fmt::format("{:.{}f} ± {:.2g}", r.value, decimals, r.stderr_);
}

}  // namespace

std::string loss_line(const ResultTable& table) {
  const std::vector<const Row*> rows = losses(table);
  if (rows.empty()) return {};
  std::vector<std::string> names;
  for (const Row* r : rows) names.push_back(terminal_text(r->variant.str()));
  names = short_names(names, kVariantWidth);
  const Row* first = rows.front();
  std::string text = fmt::format("{} {} nats a token", names[0], with_error(*first));
  if (const Row* p = table.find(first->variant.str(), "perplexity", -1))
    text += fmt::format(" (perplexity {})", number_text(p->value));
  for (size_t i = 1; i < std::min(rows.size(), kMostVariants); ++i)
    text += fmt::format(", {} {}", names[i], with_error(*rows[i]));
  if (rows.size() > kMostVariants) text += fmt::format(" and {} more", rows.size() - kMostVariants);
  return text + fmt::format("; {}, {} sample{}",
                            first->metric == "nll" ? "the next token" : "15 % of the tokens hidden", first->n,
                            first->n == 1 ? "" : "s");
}

}  // namespace rankscope
