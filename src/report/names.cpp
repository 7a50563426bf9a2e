#include "report/names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rankscope {
namespace {

using Words = std::pair<std::string_view, std::string_view>;

constexpr std::array<Words, 7> kMetricWords{{{"fro", ""},
                                             {"l1inf", "in the mixed norm"},
                                             {"kl", "KL"},
                                             {"qk", "QK"},
                                             {"ov", "OV"},
                                             {"mse", "MSE"},
                                             {"pr", "participation ratio"}}};
constexpr std::array<Words, 6> kParts{{{"skip", "skips"},
                                       {"attention-skip", "attention skip"},
                                       {"mlp-skip", "MLP skip"},
                                       {"mlp", "MLP"},
                                       {"norm", "norms"},
                                       {"position", "positions"}}};
constexpr std::array<Words, 3> kVariants{{{"full", "whole network"},
                                          {"null:init", "random initialisation"},
                                          {"null:shuffled", "shuffled tokens"}}};

template <class List>
std::string_view look_up(const List& list, std::string_view word) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Words& w) { return w.first == word; });
  return found == list.end() ? word : found->second;
}

template <class Take>
void each_word(std::string_view text, char between, Take take) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(between));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    take(word);
  }
}

}  // namespace

const ShortName* short_name(std::string_view name) {
  using enum ShortName::Where;
  static const std::vector<ShortName> all{
      {"residual", {"residual_fro_rel_trimmed", "residual_fro_rel"}, judged},
      {"eff.rank", {"effective_rank_rel"}, judged},
      {"cosine", {"token_cosine"}, judged},
      {"entropy", {"attention_entropy"}, anywhere},
      {"sinks", {"sink_margin"}, anywhere, "sink_margin"},
      {"massive", {"massive_ratio"}, stream}};
  const auto found = std::find_if(all.begin(), all.end(), [&](const ShortName& s) { return s.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string readable_metric(std::string_view metric) {
  std::string out;
  bool share = false;
  each_word(metric, '_', [&](std::string_view word) {
    if (word == "rel") {
      share = true;
      return;
    }
    const std::string_view text = look_up(kMetricWords, word);
    if (!out.empty() && !text.empty()) out += ' ';
    out += text;
  });
  return share ? out + " (share)" : out;
}

std::string readable_variant(std::string_view variant) {
  if (!variant.starts_with('-') || variant.starts_with("-head"))
    return std::string(look_up(kVariants, variant));
  std::string out = "without";
  const char* before = " ";
  each_word(variant.substr(1), '+', [&](std::string_view part) {
    out += before;
    out += look_up(kParts, part);
    before = " and ";
  });
  return out;
}

}  // namespace rankscope
