// Heads for a Transformer of a given size: what each choice costs, what theory forbids it, and what small
// networks of the same rank over width reached when they were trained at equal cost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankscope {

struct TransformerSize {
  int64_t width = 1024, layers = 24;
  int64_t mlp = 0;  // 0: four times the width
  int64_t context = 1024;
  int64_t kv_heads = 0;  // heads that share keys and values; 0: every head has its own
  int64_t kv_bytes = 2;  // of one number in the cache
};

/// A trained stand-in: layers=3 width=1 of the study fig1 (d = 64, 16 points, each asks for its farthest;
/// 10,000 steps, half of them warm-up); rank/d as in the choice.
struct ProxyError {
  double mean = 0;
  double half = 0;  // of the interval that holds the mean over all seeds and test sets with 95 %
  int64_t seeds = 0;
  bool between = false;  // interpolated between two trained ranks; the interval holds both
};

struct HeadChoice {
  int64_t heads = 0, rank = 0;
  double parameters = 0;  // of the blocks; embeddings are the same for all
  double flops = 0;       // a token, forward, at a full context
  double kv_bytes = 0;    // a token
  double bound = 0;       // LB(width, rank, heads): one layer, two points
  std::optional<ProxyError> proxy = {};
};

struct HeadChoices {
  std::vector<HeadChoice> choices;
  std::vector<std::string> remarks;  // which columns tell the choices apart and which do not
};

/// Refuses, naming the number: heads that do not divide the width, that the key-value heads do not divide, or
/// that are given twice.
HeadChoices choose_heads(const TransformerSize& size, const std::vector<int64_t>& heads);

}  // namespace rankscope
