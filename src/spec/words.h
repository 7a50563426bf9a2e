// The words a network is described with, and their names in JSON and in tables.
#pragma once

#include <string_view>
#include <vector>

namespace rankscope {

enum class NormKind { none, layer, rms, unit };  // unit: g x / ||x||, one gain
enum class Activation { gelu, gelu_tanh, quick_gelu, relu, silu, sigmoid, tanh, identity };
enum class PositionKind { none, learned, rotary, relative };  // relative: XLNet's sinusoids inside the scores
enum class HeadKind { none, linear, transformed };  // transformed: dense, activation, norm, then linear
/// How parameters start. normal: N(0, std^2), biases zero. torch: uniform, as torch's own modules do it.
/// mixed: normal, but W_V and W_O uniform in +-1/sqrt(width).
enum class InitKind { normal, torch, mixed };

std::string_view to_string(NormKind);
std::string_view to_string(Activation);
std::string_view to_string(PositionKind);
std::string_view to_string(HeadKind);
std::string_view to_string(InitKind);

/// Every word of one kind, in the order of the enumeration.
const std::vector<NormKind>& norm_kinds();
const std::vector<Activation>& activations();
const std::vector<PositionKind>& position_kinds();
const std::vector<HeadKind>& head_kinds();
const std::vector<InitKind>& init_kinds();

}  // namespace rankscope
