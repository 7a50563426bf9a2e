// The words a network is described with, and their names in JSON and in tables.
#pragma once

#include <string_view>
#include <vector>

namespace rankscope {

enum class NormKind { none, layer, rms, unit };  // unit: g x / ||x||, one gain
/// gelu_bloom: gelu_tanh with the constant BLOOM writes with eight digits. quick_gelu_7: of min(x, 7);
/// one_plus_7: 1 + x between -7 and 7 (both gpt-oss).
enum class Activation {
  gelu,
  gelu_tanh,
  gelu_bloom,
  quick_gelu,
  quick_gelu_7,
  one_plus_7,
  relu,
  silu,
  sigmoid,
  tanh,
  identity
};
/// relative: XLNet's sinusoids inside the scores. alibi: a bias on the scores that falls with the distance.
/// buckets: T5's, a learned bias for every range of distances.
enum class PositionKind { none, learned, rotary, relative, alibi, buckets };
/// What a norm on queries or keys is taken over: each head with gains that all share, each head with gains of
/// its own, or all heads together.
enum class NormSpan { head, own_head, all };
enum class HeadKind { none, linear, transformed };  // transformed: dense, activation, norm, then linear
/// How parameters start. normal: N(0, std^2), biases zero. torch: uniform, as torch's own modules do it.
/// mixed: normal, but W_V and W_O uniform in +-1/sqrt(width).
enum class InitKind { normal, torch, mixed };

std::string_view to_string(NormKind);
std::string_view to_string(Activation);
std::string_view to_string(PositionKind);
std::string_view to_string(NormSpan);
std::string_view to_string(HeadKind);
std::string_view to_string(InitKind);

/// Every word of one kind, in the order of the enumeration.
const std::vector<NormKind>& norm_kinds();
const std::vector<Activation>& activations();
const std::vector<PositionKind>& position_kinds();
const std::vector<NormSpan>& norm_spans();
const std::vector<HeadKind>& head_kinds();
const std::vector<InitKind>& init_kinds();

}  // namespace rankscope
