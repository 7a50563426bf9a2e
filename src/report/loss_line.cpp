#include "report/loss_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace rankscope {
namespace {

constexpr size_t kMostVariants = 6;  // in one line

// The digits that the error leaves, three at least.
std::string with_error(const Row& r) {
  if (!std::isfinite(r.stderr_) || r.stderr_ <= 0) return number_text(r.value);
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(r.stderr_))), 0, 6);
  return fmt::format("{:.{}f} ± {:.2g}", r.value, decimals, r.stderr_);
}

}  // namespace

std::string loss_line(const ResultTable& table) {
  std::string text;
  size_t count = 0;
  const Row* first = nullptr;
  for (const Row& r : table.rows) {
    if (r.metric != "nll" && r.metric != "pseudo_nll") continue;
    if (first == nullptr) first = &r;
    if (++count > kMostVariants) continue;
    text += fmt::format("{}{} {}", count == 1 ? "" : ", ", terminal_text(r.variant.str(), 40), with_error(r));
    if (count > 1) continue;
    text += " nats a token";
    if (const Row* p = table.find(r.variant.str(), "perplexity", -1))
      text += fmt::format(" (perplexity {})", number_text(p->value));
  }
  if (first == nullptr) return {};
  if (count > kMostVariants) text += fmt::format(" and {} more", count - kMostVariants);
  return text + fmt::format("; {}, {} sample{}",
                            first->metric == "nll" ? "the next token" : "15 % of the tokens hidden", first->n,
                            first->n == 1 ? "" : "s");
}

}  // namespace rankscope
