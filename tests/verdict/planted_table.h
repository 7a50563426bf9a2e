// A table with planted numbers, and what the verdict says of it. One file of sentences per rule.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "verdict/verdict.h"

namespace rankscope {

inline constexpr int kLayers = 6, kHeads = 2;

class Verdict : public testing::Test {
 protected:
  void SetUp() override {
    BlockSpec block = classic_block(NormPlace::post, {NormKind::layer}, {});
    block.attention().heads = kHeads;
    block.attention().d_qk = 16;
    block.attention().d_v = 32;
    spec_.blocks.assign(kLayers, block);
    spec_.width = 64;
  }

  void pre_norm() {
    for (BlockSpec& b : spec_.blocks) b.branches[0].before = {NormKind::layer};
  }
  void causal() {
    for (BlockSpec& b : spec_.blocks) b.attention().causal = true;
  }

  Row& add(const std::string& variant, const std::string& site, int layer, int head,
           const std::string& metric, double value, const std::string& tokens = "all") {
    table_.rows.push_back({variant, site, layer, head, metric, value, 0.001 * value, 8, layer + 1, tokens});
    return table_.rows.back();
  }
  Row& residual(const std::string& variant, int layer, double value) {
    const std::string site = !spec_.pre_norm()  ? fmt::format("blocks.{}.hook_resid_post", layer)
                             : layer == kLayers ? "ln_final.hook_normalized"
                                                : fmt::format("blocks.{}.ln1.hook_normalized", layer);
    return add(variant, site, layer, -1, "residual_fro_rel_trimmed", value, "content");
  }
  void residuals(const std::string& variant, const std::vector<double>& values) {
    for (size_t l = 0; l < values.size(); ++l) residual(variant, static_cast<int>(l), values[l]);
  }
  Row& head(int layer, int h, const std::string& metric, double value, const std::string& variant = "full") {
    return add(variant, fmt::format("blocks.{}.attn", layer), layer, h, metric, value);
  }
  void sink(int layer, int h, double margin, const std::string& variant = "full") {
    head(layer, h, "sink_margin", margin, variant);
    head(layer, h, "sink_margin_null", 0.4, variant);
  }
  /// What a block leaves, behind the norm that reads it.
  void residual_behind(int layer, double value) {
    add("full", fmt::format("blocks.{}.hook_resid_post", layer), layer, -1, "residual_fro_rel_normed", value,
        "content");
  }
  /// The MLP of a layer: how far tokens differ beside the corpus, in what its units read, in how many
  /// directions.
  void reads(int layer, double spread, double difference = 0.7, double directions = 12,
             const std::string& variant = "full") {
    const std::string site = fmt::format("blocks.{}.mlp.hook_pre", layer);
    add(variant, site, layer, -1, "spread", spread);
    add(variant, site, layer, -1, "unit_sd_rel_p90", difference, "content");
    add(variant, site, layer, -1, "unit_rank", directions, "content");
  }
  void spreads(const std::vector<double>& values, const std::string& variant = "full") {
    for (size_t l = 0; l < values.size(); ++l) reads(static_cast<int>(l), values[l], 0.7, 12, variant);
  }
  void output_kl(const std::string& variant, double value) {
    add(variant, "unembed.hook_out", -1, -1, "output_kl", value);
  }

  /// What single samples gave at a site, number 0 first.
  void samples(const std::string& site, int layer, const std::string& metric,
               const std::vector<double>& values, const std::string& variant = "full",
               const std::string& tokens = "all") {
    for (size_t s = 0; s < values.size(); ++s)
      table_.samples.push_back(
          {variant, site, layer, -1, metric, tokens, static_cast<int64_t>(s), values[s]});
  }

  std::vector<Finding> all(std::string_view topic) const {
    std::vector<Finding> out;
    for (const Finding& f : judge(table_, spec_, limits_, {.shortest = shortest_, .not_finite = not_finite_}))
      if (f.topic == topic) out.push_back(f);
    return out;
  }
  /// The sentences of one topic; "? " marks those that are not known.
  std::vector<std::string> said(std::string_view topic) const {
    std::vector<std::string> out;
    for (const Finding& f : all(topic)) out.push_back((f.known ? "" : "? ") + f.sentence);
    return out;
  }
  using Lines = std::vector<std::string>;

  ModelSpec spec_;
  ResultTable table_;
  Thresholds limits_;
  int64_t shortest_ = 100;
  std::map<std::string, std::string, std::less<>> not_finite_;
};

}  // namespace rankscope
