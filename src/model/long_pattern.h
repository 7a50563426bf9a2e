// Attention of more queries than kWholePattern, where its matrix is not held: what an observer is shown in
// place of tiles.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/tensor_fwd.h"
#include "model/sites.h"

namespace rankscope {

/// The patterns [S, H, T, T'] of some samples of one length.
class LongPattern {
 public:
  virtual ~LongPattern() = default;
  virtual int64_t samples() const = 0;
  virtual int64_t heads() const = 0;
  virtual int64_t keys() const = 0;

  /// Double: sums of rows [S, H, T] (NaN where a row is not finite), the entropy of each row over its sum, in
  /// nats [S, H, T], and sums of columns [S, H, T'].
  virtual const at::Tensor& mass() const = 0;
  virtual const at::Tensor& entropy() const = 0;
  virtual const at::Tensor& received() const = 0;

  /// Some rows, computed again: `index` (int64, on the host) of heads [first_head, first_head + heads) of
  /// samples [first, first + count): [count, heads, n, T'].
  virtual at::Tensor rows(int64_t first, int64_t count, int64_t first_head, int64_t heads,
                          const at::Tensor& index) const = 0;
  /// The scores they are made of, scaled, -inf where a key is hidden.
  virtual at::Tensor scores(int64_t first, int64_t count, int64_t first_head, int64_t heads,
                            const at::Tensor& index) const = 0;
};

/// A BlockObserver that can do without tiles is one of these, too.
class LongPatternObserver {
 public:
  virtual ~LongPatternObserver() = default;
  /// Whether it needs no tiles of that branch's patterns and scores.
  virtual bool reads_long(std::string_view branch) const = 0;
  virtual void see_long(std::string_view branch, const LongPattern& pattern, const TilePlace& place) = 0;
};

}  // namespace rankscope
