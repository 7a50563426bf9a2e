// The parameters of a network in one flat buffer a trial: where each lies, and what it holds at the start.
#pragma once

#include <cstdint>
#include <vector>

#include "parts/parameters.h"

namespace rankscope {

struct Slot {
  Parameter parameter;
  int64_t offset = 0;
};

/// In the order of the forward pass; Q, K and V side by side.
class Layout {
 public:
  /// Every parameter starts at a multiple of `alignment`, but for K and V, which follow what is in front.
  explicit Layout(const ModelSpec& spec, int64_t alignment = 1);
  const std::vector<Slot>& slots() const { return slots_; }
  int64_t size() const { return size_; }
  /// Where a parameter starts; -1: the network has none of that name.
  int64_t offset_of(const std::string& name) const;

 private:
  std::vector<Slot> slots_;
  int64_t size_ = 0;
};

/// The starting point of a trial: a function of the spec's law and the seed alone.
std::vector<float> initial_parameters(const ModelSpec& spec, uint64_t seed);

}  // namespace rankscope
