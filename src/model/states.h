// Attention that keeps a state: a matrix a head, of the width of its keys by the width of its values, that
// tokens write into one after another and queries read. It is never formed where attention runs; here it is,
// for those who look.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/variant.h"

namespace rankscope {

/// Whether its heads keep one: the linear kinds, without a window, and but for `linear` under a causal mask.
bool keeps_state(const AttentionSpec& spec);

constexpr int64_t kLastDoubling = 512;

/// After how many tokens the state of a text of that length is looked at: after 2, 4, 8, ... up to
/// kLastDoubling and after the last. Without a mask every query reads what all tokens wrote, so there is
/// one.
std::vector<int64_t> state_tokens(bool causal, int64_t length);

/// The states after those tokens, one below the other: [S, H, count * d_qk, d_v] for values v [S * H, T, d_v]
/// of tokens whose positions ascend. Where positions turn keys, a state is turned to its last token, which
/// changes no singular value.
at::Tensor states_of(const AttentionInput& in, const at::Tensor& v);

}  // namespace rankscope
