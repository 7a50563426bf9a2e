// Sequential composition of functions, the task by which Ye et al. (2602.01763, after Chen, Peng and Wu
// 2412.02975) tell attention apart by depth: a start i_0 = z_0, then i_1 = z_1(i_0), and
// i_{l+1} = z_{l+1}(w_l, i_l) with numbers w_l that are told at the end. The prompt lists the tables in the
// wrong order for a causal network, z_L first, then ... z_1, z_0 and w.
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope {

struct CompositionSize {
  int64_t functions = 1;  // L
  int64_t values = 6;     // m: of z_1, and of z_0
  int64_t choices = 3;    // of each w_l

  /// Entries of table z_l, l = 1 .. L: m times choices^(l - 1). It maps them to as many values.
  int64_t entries(int64_t l) const;
  /// Of the prompt: all entries, z_0 and w.
  int64_t tokens() const;
};

struct Composition {
  CompositionSize size;
  std::vector<std::vector<int64_t>> tables;  // z_1 .. z_L
  int64_t start = 0;                         // z_0
  std::vector<int64_t> told;                 // w_1 .. w_{L-1}

  /// Which entry of z_l is asked for when i_{l-1} is known: w_{l-1} and i_{l-1} as one number.
  int64_t entry(int64_t l, int64_t before) const;
  int64_t answer() const;
};

/// The instance with this number: a function of the seed.
Composition draw_composition(const CompositionSize& size, uint64_t seed, uint32_t number);

/// A token of the prompt: table `level` (0: z_0; L + 1: w) has `value` at `key`.
struct CompositionToken {
  int64_t level, key, value;
};
std::vector<CompositionToken> prompt_of(const Composition& composition);

/// log2 of the fewest tokens n for which it is proven that L - 1 full layers and 2^(3 L^2) linear ones cannot
/// compose L functions: the theorem asks for H d p <= n^(2^(-4 L - 2)), H heads, width d, p bits a number.
double log2_tokens_hybrids_fail(double log2_message, int64_t functions);
/// The same for L full layers alone (Chen et al.): H d p <= n^(2^(-4 L)).
double log2_tokens_full_layers_fail(double log2_message, int64_t functions);

}  // namespace rankscope
