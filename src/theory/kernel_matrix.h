// The matrix C of random heads (kernel.h), as an operator. It is kept as C - 1/2, whose
// entries are small, in tiles of one half of the symmetric matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "theory/features.h"

namespace rankscope {

class KernelMatrix {
 public:
  /// `threads` 0 is all of the machine's. Tiles are computed once and kept in single precision, which moves
  /// the best error by less than 1e-7, when they take no more than `memory` bytes, and are computed anew in
  /// every product otherwise.
  explicit KernelMatrix(const Heads& heads, int threads = 0, size_t memory = size_t{1} << 30);

  int64_t size() const { return count_; }
  bool stored() const { return !tiles_.empty(); }

  /// C x. The order of summation does not depend on the number of threads.
  std::vector<double> multiply(const std::vector<double>& x) const;

 private:
  struct Tile {
    int64_t row, column;  // in tiles; column <= row
  };
  template <class Job>
  void over_tiles(const Job& job) const;
  void compute(const Tile& tile, float* out) const;

  int64_t d_, count_, blocks_;
  int threads_;
  std::vector<double> q_, k_;                  // rows, padded with zeros to whole tiles
  std::vector<double> q_columns_, k_columns_;  // block after block, [d, kTile]
  std::vector<double> diagonal_;               // of C - 1/2, where rounding would cost half of the digits
  std::vector<Tile> order_;
  std::vector<float> tiles_;
};

}  // namespace rankscope
