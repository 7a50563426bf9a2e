#include "model/spec.h"

#include <fmt/format.h>

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

std::string_view to_string(NormPlace place) { return place == NormPlace::pre ? "pre" : "post"; }

std::string_view to_string(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::quick_gelu:
      return "quick_gelu";
    case Activation::relu:
      return "relu";
    case Activation::silu:
      return "silu";
    case Activation::tanh:
      return "tanh";
    case Activation::identity:
      return "identity";
  }
  return "?";
}

std::string_view to_string(MlpKind kind) {
  switch (kind) {
    case MlpKind::none:
      return "none";
    case MlpKind::plain:
      return "plain";
    case MlpKind::gated:
      return "gated";
    case MlpKind::activation:
      return "activation";
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
  }
  return "?";
}

namespace {

std::string describe(const BlockSpec& b) {
  const AttentionSpec& a = b.attention;
  std::string s = fmt::format("{}:heads={},rank={}", a.variant, a.heads, a.d_qk);
  if (a.kv_heads != a.heads) s += fmt::format(",kv_heads={}", a.kv_heads);
  if (a.d_v != a.d_qk) s += fmt::format(",v_rank={}", a.d_v);
  if (a.causal) s += ",causal";
  if (a.window > 0) s += fmt::format(",window={}", a.window);
  if (!a.positions) s += ",positions=off";
  for (const int64_t h : a.heads_off) s += fmt::format(",off=H{}", h);
  if (a.truncate_qk > 0) s += fmt::format(",qk<={}", a.truncate_qk);
  if (a.truncate_ov > 0) s += fmt::format(",ov<={}", a.truncate_ov);
  s += b.mlp.kind == MlpKind::none ? " mlp=none"
                                   : fmt::format(" mlp={}:{},width={}", to_string(b.mlp.kind),
                                                 to_string(b.mlp.activation), b.mlp.width);
  s += b.norm.kind == NormKind::none
           ? " norm=none"
           : fmt::format(" norm={}:{}", to_string(b.norm.kind), to_string(b.norm.place));
  if (!b.attention_skip) s += " attention-skip=off";
  if (!b.mlp_skip && b.mlp.kind != MlpKind::none) s += " mlp-skip=off";
  return s;
}

}  // namespace

std::string describe(const ModelSpec& spec) {
  const EmbeddingSpec& e = spec.embedding;
  std::string s =
      fmt::format("{} width={} positions={} ", spec.architecture, spec.width, to_string(spec.position));
  s += e.vocabulary > 0
           ? fmt::format("vocabulary={}\n", e.vocabulary)
           : fmt::format("image={} patch={} channels={}\n", e.image_size, e.patch_size, e.channels);
  for (size_t first = 0; first < spec.blocks.size();) {
    size_t last = first;
    const std::string text = describe(spec.blocks[first]);
    while (last + 1 < spec.blocks.size() && describe(spec.blocks[last + 1]) == text) ++last;
    s += first == last ? fmt::format("block {}: {}\n", first, text)
                       : fmt::format("blocks {}-{}: {}\n", first, last, text);
    first = last + 1;
  }
  return s;
}

}  // namespace rankscope
