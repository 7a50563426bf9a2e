#include "spec/head_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "spec/variant_text.h"

namespace rankscope {
namespace {

int64_t whole_number(const std::string& name, const std::string& text, int64_t low, int64_t high) {
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size() || value < low || value > high)
    throw usage_error(fmt::format("{} of mixed attention is a whole number from {} to {}, not {}", name, low,
                                  high, printable(text)));
  return value;
}

void refuse_what_all_heads_share(const AttentionSpec& spec) {
  if (spec.sinks || spec.buckets > 0)
    throw usage_error("mixed attention goes with neither learned sinks nor learned biases by distance")
        .hint("one kind of attention for all heads");
}

}  // namespace

const std::vector<std::string>& head_group_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> out{"full", "local", "compressed"};
    for (const std::string& name : attention_names())
      if (name != "softmax" && name != kMixed) out.push_back(name);
    return out;
  }();
  return kinds;
}

int64_t HeadGroups::padded(int64_t tokens) const {
  const int64_t steps = tokens <= kernel ? 0 : (tokens - kernel + stride - 1) / stride;
  return kernel + stride * steps + 2 * padding();
}

int64_t HeadGroups::compressed_keys(int64_t tokens) const { return (padded(tokens) - kernel) / stride + 1; }

bool HeadGroups::compresses() const {
  return std::any_of(groups.begin(), groups.end(), [](const HeadGroup& g) { return g.kind == "compressed"; });
}

const HeadGroup& HeadGroups::of(int64_t head) const {
  for (const HeadGroup& g : groups)
    if (head >= g.first && head < g.first + g.heads) return g;
  throw Error(fmt::format("there is no head {}", head));
}

bool has_head_groups(const AttentionSpec& spec) {
  return std::string_view(spec.variant).substr(0, spec.variant.find(':')) == kMixed;
}

HeadGroups head_groups(const AttentionSpec& spec) {
  refuse_what_all_heads_share(spec);
  const VariantText told = read_variant(spec.variant);
  HeadGroups out;
  std::vector<std::string> known{"window", "kernel", "stride"};
  known.insert(known.end(), head_group_kinds().begin(), head_group_kinds().end());
  for (const auto& [name, value] : told.options) {
    if (name == "window") out.window = whole_number(name, value, 3, kWidestWindow);
    if (name == "kernel") out.kernel = whole_number(name, value, 1, kLongestFilter);
    if (name == "stride") out.stride = whole_number(name, value, 1, kLongestFilter);
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw unknown_name("option of mixed attention", name, known);
  }
  int64_t heads = 0;
  for (const std::string& kind : head_group_kinds()) {
    const auto given = told.options.find(kind);
    if (given == told.options.end()) continue;
    const int64_t count = whole_number(given->first, given->second, 0, kMostGroupHeads);
    if (count > 0) out.groups.push_back({given->first, heads, count});
    heads += count;
  }
  if (heads == 0) {
    const int64_t local = spec.heads / 2;
    if (local > 0) out.groups.push_back({"local", 0, local});
    out.groups.push_back({"compressed", local, spec.heads - local});
  } else if (heads != spec.heads) {
    throw usage_error(fmt::format("\"{}\" has {} heads, the layer {}", spec.variant, heads, spec.heads))
        .hint("mixed:full=1,local=2,compressed=1 is for four heads");
  }
  return out;
}

AttentionSpec some_heads(const AttentionSpec& spec, int64_t first, int64_t heads, std::string variant) {
  AttentionSpec out = spec;
  out.variant = std::move(variant);
  out.heads = out.kv_heads = heads;
  out.modules = 1;
  if (!spec.alibi.empty()) out.alibi.assign(spec.alibi.begin() + first, spec.alibi.begin() + first + heads);
  out.heads_off = out.heads_fixed = {};
  out.fixed_values = {};
  return out;
}

std::string variant_of_head(const AttentionSpec& spec, int64_t head) {
  if (!has_head_groups(spec)) return spec.variant;
  const HeadGroups g = head_groups(spec);
  return fmt::format("{}:{}=1,window={},kernel={},stride={}", kMixed, g.of(head).kind, g.window, g.kernel,
                     g.stride);
}

double products_of_heads(const AttentionSpec& spec, int64_t queries, int64_t keys) {
  const auto q = static_cast<double>(queries), k = static_cast<double>(keys);
  if (!has_head_groups(spec)) return static_cast<double>(spec.heads) * q * k;
  const HeadGroups all = head_groups(spec);
  const auto compressed = static_cast<double>(all.compressed_keys(keys));
  double total = 0;
  for (const HeadGroup& g : all.groups) {
    const double one = g.kind == "local"        ? q * std::min(k, static_cast<double>(3 * all.block()))
                       : g.kind == "compressed" ? (q + static_cast<double>(all.kernel)) * compressed
                                                : q * k;
    total += one * static_cast<double>(g.heads);
  }
  return total;
}

}  // namespace rankscope
