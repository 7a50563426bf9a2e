// A few tokens of every sample, all over it, since ratios of sums over tokens need no more. Samples
// that give equally many come together, so that on a GPU one operation serves all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "lenses/lens.h"

namespace rankscope {

/// Samples of one batch, S of them, with n tokens each.
struct SomeTokens {            // whoever handles it includes ATen
  std::vector<int64_t> names;  // [S] global sample numbers
  at::Tensor samples;          // [S] long: their places in the batch
  at::Tensor numbers;          // [S] long: their global numbers
  at::Tensor rows;             // [S * n] long: where their tokens are
  int64_t count() const { return static_cast<int64_t>(names.size()); }

  /// Of x [N, ..] the tokens, [S, n, ..].
  at::Tensor of(const at::Tensor& x) const;
  /// [groups, S] double: 1 where a sample's number leaves that remainder. Sums over samples by group are
  /// products with it, the same on every run.
  at::Tensor by_group(int64_t groups) const;
};

enum class Take { content, all };

/// At most `most` tokens a sample (support/some_places.h), on the device of x. Samples with fewer than two
/// are left out. `made`: how many numbers are made of a sample. No more samples come together than a core's
/// own cache or half a gigabyte of a device has room for. Valid until the next call.
const std::vector<SomeTokens>& some_tokens(const Packing& packing, Take take, int64_t most,
                                           const at::Tensor& x, int64_t made);

}  // namespace rankscope
