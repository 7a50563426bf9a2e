// Which monomials the polynomial 1 + s + ... + s^degree / degree! in s = q . k is made of, as kernels read
// it: each is a channel times a monomial before it, channels in ascending order, so that each comes once.
#pragma once

#include <memory>
#include <vector>

#include "kernels/running_attention.h"

namespace rankscope {

struct MonomialTable {
  std::vector<int32_t> parent, channel;
  std::vector<double> factor;
  std::vector<int64_t> begins;  // where each degree begins, and the end

  Monomials view() const {
    return {static_cast<int64_t>(parent.size()), parent.data(), channel.data(), factor.data()};
  }
};

/// PackedMonomials of a table; an int32 holds the bits of a uint32.
struct PackedTable {
  std::vector<int32_t> channels;
  std::vector<float> factor;
};
PackedTable pack(const Monomials& table);

/// Made once a width and degree.
std::shared_ptr<const MonomialTable> monomial_table(int64_t width, int64_t degree);

}  // namespace rankscope
