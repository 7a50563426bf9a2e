#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "attention/support/scores.h"
#include "base/error.h"
#include "spec/head_groups.h"
#include "spec/variant_text.h"

namespace rankscope {

namespace {

const VariantOption& option_of(const AttentionVariant& variant, std::string_view name) {
  std::vector<std::string> known;
  for (const VariantOption& o : variant.options) {
    if (o.name == name) return o;
    known.emplace_back(o.name);
  }
  if (known.empty()) throw usage_error(fmt::format("{} attention has no options", variant.name));
  throw unknown_name(fmt::format("option of {} attention", variant.name), name, known);
}

double number_of(const std::string& text) {
  double value = NAN;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && rest == text.data() + text.size() ? value : NAN;
}

void check_option(const AttentionVariant& variant, const std::string& name, const std::string& value) {
  const VariantOption& o = option_of(variant, name);
  const auto of = [&] { return fmt::format("{} of {} attention", name, variant.name); };
  if (!o.words.empty()) {
    if (std::find(o.words.begin(), o.words.end(), value) == o.words.end())
      throw usage_error(fmt::format("{} is {}, not {}", of(), fmt::join(o.words, " or "), printable(value)));
    return;
  }
  const double number = number_of(value);
  if (!(number >= o.low && number <= o.high) || (o.whole && number != std::floor(number)))
    throw usage_error(fmt::format("{} is a {}number from {} to {}, not {}", of(), o.whole ? "whole " : "",
                                  o.low, o.high, printable(value)));
}

}  // namespace

const AttentionVariant& attention_variant(std::string_view text) {
  const VariantText told = read_variant(text);
  std::vector<std::string> known;
  for (const AttentionVariant* v : attention_variants()) {
    known.emplace_back(v->name);
    if (v->name != told.name) continue;
    for (const auto& [name, value] : told.options) check_option(*v, name, value);
    return *v;
  }
  throw unknown_name("attention variant", told.name, known);
}

std::string word_option(const AttentionSpec& spec, std::string_view name) {
  const VariantText told = read_variant(spec.variant);
  const auto it = told.options.find(std::string(name));
  return it != told.options.end() ? it->second
                                  : std::string(option_of(attention_variant(spec.variant), name).otherwise);
}

double number_option(const AttentionSpec& spec, std::string_view name) {
  return number_of(word_option(spec, name));
}

void refuse_causal(const AttentionSpec& spec) {
  if (!spec.causal) return;
  throw Error(
      fmt::format("{} attention cannot be causal: what a query takes depends on the queries behind it",
                  read_variant(spec.variant).name))
      .hint("prefix_normalised counts earlier queries only");
}

bool only_tokens_decide(const AttentionSpec& spec) {
  return attention_variant(spec.variant).only_tokens && !spec.causal && spec.window == 0 &&
         !spec.qk_norm.acts() && spec.softcap == 0 && !spec.sinks && spec.buckets == 0 &&
         ((spec.rotary_frequencies.empty() && spec.alibi.empty()) || !spec.positions);
}

at::Tensor heads_first(const at::Tensor& x, int64_t heads) {
  const int64_t S = x.size(0), T = x.size(1), kv = x.size(2), d = x.size(3);
  at::Tensor y = x.permute({0, 2, 1, 3});
  if (kv != heads) y = y.unsqueeze(2).expand({S, kv, heads / kv, T, d});
  return y.reshape({S * heads, T, d}).contiguous();
}

at::Tensor hidden_keys(const AttentionSpec& spec, const at::Tensor& index, int64_t keys) {
  if (!spec.causal && spec.window == 0) return {};
  const at::Tensor i = index.unsqueeze(1), j = at::arange(keys, index.options()).unsqueeze(0);
  const at::Tensor hidden =
      spec.causal ? j > i : at::zeros({i.size(0), keys}, index.options().dtype(at::kBool));
  return spec.window > 0 ? hidden.logical_or((i - j).abs() >= spec.window) : hidden;
}

at::Tensor hidden_keys(const AttentionSpec& spec, int64_t first_row, int64_t rows, int64_t keys,
                       const at::Tensor& like) {
  if (!spec.causal && spec.window == 0) return {};
  const auto options = like.options().dtype(at::kLong).requires_grad(false);
  return hidden_keys(spec, at::arange(first_row, first_row + rows, options), keys);
}

at::Tensor softmax_seen(at::Tensor scores, const at::Tensor& hidden, at::Tensor* masked,
                        const at::Tensor& sinks) {
  if (hidden.defined()) scores.masked_fill_(hidden, -std::numeric_limits<double>::infinity());
  if (masked != nullptr) *masked = scores;
  if (!sinks.defined()) return at::softmax(scores, -1);
  std::vector<int64_t> column = scores.sizes().vec();
  column.back() = 1;
  const at::Tensor sink = sinks.to(scores.scalar_type()).view({-1, 1, 1}).expand(column);
  return at::softmax(at::cat({scores, sink}, -1), -1).narrow(-1, 0, scores.size(-1));
}

at::Tensor masked_softmax(at::Tensor scores, const AttentionSpec& spec, int64_t first_row, at::Tensor* masked,
                          const at::Tensor& sinks) {
  const at::Tensor hidden = hidden_keys(spec, first_row, scores.size(-2), scores.size(-1), scores);
  return softmax_seen(std::move(scores), hidden, masked, sinks);
}

bool rows_sum_to_one(const AttentionSpec& spec) {
  if (spec.sinks) return false;
  if (!has_head_groups(spec)) return attention_variant(spec.variant).row_stochastic;
  const std::vector<HeadGroup> groups =
      head_groups(spec).groups;  // filters of compressed heads sum to anything
  return std::all_of(groups.begin(), groups.end(), [](const HeadGroup& g) {
    return g.kind == "full" || g.kind == "local" ||
           (g.kind != "compressed" && attention_variant(g.kind).row_stochastic);
  });
}

}  // namespace rankscope
