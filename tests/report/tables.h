// Small result tables for the tests of report/.
#pragma once

#include <string>

#include "base/table.h"

namespace rankscope {

/// A row of which only this matters.
inline Row plain_row(const std::string& variant, double value, const std::string& metric = "") {
  Row row;
  row.variant = variant;
  row.value = value;
  row.metric = metric;
  return row;
}

inline void add_tokens(ResultTable& t, const std::string& variant, const std::string& site, int layer,
                       int depth, double residual) {
  const auto add = [&](const char* metric, double value) {
    t.rows.push_back({variant, site, layer, -1, metric, value, 0.01, 8, depth, "content"});
  };
  add("residual_fro_rel_trimmed", residual);
  add("effective_rank_rel", residual / 2);
  add("token_cosine", 1 - residual);
}

/// A post-norm model of `layers` layers with two heads; the residual falls from 0.9 by `step` a layer.
inline void add_variant(ResultTable& t, const std::string& variant, int layers, double step,
                        double output_kl) {
  add_tokens(t, variant, "hook_embed", -1, 0, 0.9);
  for (int l = 0; l < layers; ++l) {
    const std::string block = "blocks." + std::to_string(l);
    add_tokens(t, variant, block + ".hook_resid_post", l, l + 1, 0.9 - step * (l + 1));
    for (int h = 0; h < 2; ++h)
      t.rows.push_back({variant, block + ".attn.hook_pattern", l, h, "attention_entropy", 0.2 + 0.4 * h, 0.01,
                        8, l, "all"});
    for (const int h : {0, 1})  // one sink of two heads
      t.rows.push_back(
          {variant, block + ".attn.hook_pattern", l, h, "sink_margin", h == 0 ? 5.0 : 1.0, 0.1, 8, l, "all"});
    t.rows.push_back(
        {variant, block + ".hook_resid_post", l, -1, "massive_ratio", 12345, 1, 8, l + 1, "all"});
  }
  t.rows.push_back({variant, "output", -1, -1, "output_kl", output_kl, 0.001, 8, layers, "all"});
}

}  // namespace rankscope
