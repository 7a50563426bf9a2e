#include "report/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"

namespace rankscope {
namespace {

const Json& names() {
  static const Json all = Json::parse(names_json());
  return all;
}

// The word of a list, or what was given.
std::string look_up(const char* list, std::string_view word, std::string_view otherwise) {
  return names().at(list).value(std::string(word), std::string(otherwise));
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

const std::vector<ShortName>& short_names() {
  using enum ShortName::Where;
  static const std::vector<ShortName> all{
      {"residual", {"residual_fro_rel_trimmed", "residual_fro_rel"}, judged},
      {"eff.rank", {"effective_rank_rel"}, judged},
      {"cosine", {"token_cosine"}, judged},
      {"entropy", {"attention_entropy"}, anywhere},
      {"sinks", {"sink_margin"}, anywhere, "sink_margin"},
      {"massive", {"massive_ratio"}, stream},
      {"attn.rank", {"numerical_rank"}, attention}};
  return all;
}

const ShortName* short_name(std::string_view name) {
  const std::vector<ShortName>& all = short_names();
  const auto found = std::find_if(all.begin(), all.end(), [&](const ShortName& s) { return s.name == name; });
  return found == all.end() ? nullptr : &*found;
}

bool is_name(std::string_view name) {
  return short_name(name) != nullptr || names().at("metrics").contains(std::string(name));
}

std::string readable_metric(std::string_view metric) {
  const size_t rows = metric.rfind("_rows");  // a sampled spectrum is named as the whole one
  const std::string known = look_up("metrics", metric.substr(0, rows), "");
  if (!known.empty())
    return rows == std::string_view::npos ? known
                                          : fmt::format("{}, of {} rows", known, metric.substr(rows + 5));
  std::string out;
  bool share = false;
  each_word(metric, '_', [&](std::string_view word) {
    if (word == "rel") {
      share = true;
      return;
    }
    if (!out.empty()) out += ' ';
    out += look_up("words", word, word);
  });
  return share ? out + " (share)" : out;
}

std::string axis_label(std::string_view metric) {
  const std::string unit = look_up("units", metric, "");
  return unit.empty() ? readable_metric(metric) : fmt::format("{}, {}", readable_metric(metric), unit);
}

std::string depth_label(std::string_view metric) {
  for (const auto& [start, label] : names().at("depths").items())
    if (metric.starts_with(start)) return label.get<std::string>();
  return "depth (blocks passed)";
}

std::string readable_variant(std::string_view variant) {
  if (!variant.starts_with('-') || variant.starts_with("-head")) return look_up("variants", variant, variant);
  std::string out = "without";
  const char* before = " ";
  each_word(variant.substr(1), '+', [&](std::string_view part) {
    out += before;
    out += look_up("parts", part, part);
    before = " and ";
  });
  return out;
}

}  // namespace rankscope
