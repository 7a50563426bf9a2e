#include "spec/words.h"

namespace rankscope {

std::string_view to_string(NormKind kind) {
  switch (kind) {
    case NormKind::none:
      return "none";
    case NormKind::layer:
      return "layer";
    case NormKind::rms:
      return "rms";
    case NormKind::unit:
      return "unit";
  }
  return "?";
}

std::string_view to_string(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::gelu_bloom:
      return "gelu_bloom";
    case Activation::quick_gelu:
      return "quick_gelu";
    case Activation::quick_gelu_7:
      return "quick_gelu_7";
    case Activation::one_plus_7:
      return "one_plus_7";
    case Activation::relu:
      return "relu";
    case Activation::silu:
      return "silu";
    case Activation::sigmoid:
      return "sigmoid";
    case Activation::tanh:
      return "tanh";
    case Activation::identity:
      return "identity";
  }
  return "?";
}

std::string_view to_string(PositionKind kind) {
  switch (kind) {
    case PositionKind::none:
      return "none";
    case PositionKind::learned:
      return "learned";
    case PositionKind::rotary:
      return "rotary";
    case PositionKind::relative:
      return "relative";
    case PositionKind::alibi:
      return "alibi";
    case PositionKind::buckets:
      return "buckets";
  }
  return "?";
}

std::string_view to_string(NormSpan span) {
  switch (span) {
    case NormSpan::head:
      return "head";
    case NormSpan::own_head:
      return "own_head";
    case NormSpan::all:
      return "all";
  }
  return "?";
}

std::string_view to_string(HeadKind kind) {
  switch (kind) {
    case HeadKind::none:
      return "none";
    case HeadKind::linear:
      return "linear";
    case HeadKind::transformed:
      return "transformed";
  }
  return "?";
}

std::string_view to_string(InitKind kind) {
  switch (kind) {
    case InitKind::normal:
      return "normal";
    case InitKind::torch:
      return "torch";
    case InitKind::mixed:
      return "mixed";
  }
  return "?";
}

const std::vector<NormKind>& norm_kinds() {
  static const std::vector all{NormKind::none, NormKind::layer, NormKind::rms, NormKind::unit};
  return all;
}

const std::vector<Activation>& activations() {
  static const std::vector all{Activation::gelu,       Activation::gelu_tanh,    Activation::gelu_bloom,
                               Activation::quick_gelu, Activation::quick_gelu_7, Activation::one_plus_7,
                               Activation::relu,       Activation::silu,         Activation::sigmoid,
                               Activation::tanh,       Activation::identity};
  return all;
}

const std::vector<PositionKind>& position_kinds() {
  static const std::vector all{PositionKind::none,     PositionKind::learned, PositionKind::rotary,
                               PositionKind::relative, PositionKind::alibi,   PositionKind::buckets};
  return all;
}

const std::vector<NormSpan>& norm_spans() {
  static const std::vector all{NormSpan::head, NormSpan::own_head, NormSpan::all};
  return all;
}

const std::vector<HeadKind>& head_kinds() {
  static const std::vector all{HeadKind::none, HeadKind::linear, HeadKind::transformed};
  return all;
}

const std::vector<InitKind>& init_kinds() {
  static const std::vector all{InitKind::normal, InitKind::torch, InitKind::mixed};
  return all;
}

}  // namespace rankscope
