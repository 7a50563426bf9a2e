// What the variants of one state have in common inside a block, computed once a batch: they share every
// prefix of steps in which they agree. A factorial of skips, MLPs and norms asks for the same attention of
// the first block again and again.
#pragma once

#include <vector>

#include "base/tensor_fwd.h"
#include "model/block.h"

namespace rankscope {

class SharedPrefixes {
 public:
  /// The block's output, from whatever is already known of it; `held` norms are another computation.
  at::Tensor run(const at::Tensor& x, const BlockContext& context, bool held, size_t batch);

 private:
  struct Entry {
    std::vector<Step> prefix;
    bool held;
    size_t batch;
    BlockState state;
  };
  const BlockState* find(const std::vector<Step>& steps, size_t n, bool held, size_t batch) const;

  std::vector<Entry> known_;
};

}  // namespace rankscope
