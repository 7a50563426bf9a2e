// Random rank-1 hard heads: how queries and keys are drawn.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace rankscope {

enum class Construction {
  gaussian,  // q and k independent and uniform on the sphere
  uniform,   // q uniform, <q,k> uniform in (-1, 1): the published construction
  equal,     // q = k: no head opposes the target, so nothing cancels
  as_coded,  // `uniform` as the published code has it: the part of k across q is not brought back to length
             // one, so k is too short, while b is taken at the angle that was meant
};

/// Throws for an unknown name, with the nearest known ones.
Construction construction_named(std::string_view name);
std::string_view to_string(Construction construction);

struct Heads {
  int64_t d = 0, count = 0;
  std::vector<double> q, k;    // [count, d]
  std::vector<double> cosine;  // [count], <q,k> as it was meant
};

/// Head h is a function of seed and h alone: more heads keep the first ones.
Heads random_heads(Construction construction, int64_t d, int64_t count, uint64_t seed);

/// b of every head (kernel.h).
std::vector<double> against_target(const Heads& heads);

}  // namespace rankscope
