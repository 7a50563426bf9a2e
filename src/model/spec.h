// What a Transformer is, as a value. BERT, ALBERT, XLNet, GPT-2, Llama, ViT and every study model are values
// of ModelSpec; taking a part out is an edit of it. Knows nothing of torch, so reading a config stays cheap.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

enum class NormKind { none, layer, rms, unit };  // unit: g x / ||x||, one gain
enum class NormPlace { pre, post };
enum class Activation { gelu, gelu_tanh, quick_gelu, relu, silu, tanh, identity };
enum class MlpKind {
  none,
  plain,
  gated,      // W_out (act(W_gate x) * W_in x)
  activation  // act(x): what is left when the matrices are replaced by the identity
};
enum class PositionKind { none, learned, rotary, relative };  // relative: XLNet's sinusoids inside the scores
enum class HeadKind {
  none,
  linear,
  transformed
};  // transformed: dense, activation, norm, then the vocabulary

struct NormSpec {
  NormKind kind = NormKind::layer;
  NormPlace place = NormPlace::post;
  double epsilon = 1e-12;
  bool operator==(const NormSpec&) const = default;
};

struct AttentionSpec {
  std::string variant = "softmax";  // a file of attention/
  int64_t heads = 1;
  int64_t kv_heads = 1;  // query head h reads KV head h / (heads / kv_heads)
  int64_t d_qk = 1;      // width of a query or key: the rank of a head's QK map
  int64_t d_v = 1;       // width of a value: the rank of a head's OV map
  double scale = 1.0;    // multiplies the scores
  bool causal = false;
  int64_t window = 0;                      // > 0: a query sees only keys less than this far back
  bool positions = true;                   // false: rotary or relative terms left out
  std::vector<double> rotary_frequencies;  // one per rotated pair; empty without RoPE
  double rotary_scale = 1.0;               // multiplies cos and sin (YaRN-like scalings)
  bool bias = true;                        // biases on Q, K, V
  bool output_bias = true;
  std::vector<int64_t> heads_off;  // heads whose output is set to zero
  int64_t truncate_qk = 0;         // > 0: each head's QK map cut to this rank
  int64_t truncate_ov = 0;
  bool operator==(const AttentionSpec&) const = default;
};

struct MlpSpec {
  MlpKind kind = MlpKind::plain;
  int64_t width = 0;
  Activation activation = Activation::gelu;
  bool bias = true;
  bool operator==(const MlpSpec&) const = default;
};

/// One block. post: u = N1(x + attn(x)), y = N2(u + mlp(u)).  pre: u = x + attn(N1 x), y = u + mlp(N2 u).
struct BlockSpec {
  AttentionSpec attention;
  MlpSpec mlp;
  NormSpec norm;
  bool attention_skip = true;
  bool mlp_skip = true;
  int64_t weights = 0;  // which stored block this one uses (ALBERT shares one)
  bool operator==(const BlockSpec&) const = default;
};

struct EmbeddingSpec {
  int64_t vocabulary = 0;         // 0: patches
  int64_t width = 0;              // before the map to the model's width; equal to it when there is no map
  bool map = false;               // ALBERT's 128 -> 768
  int64_t positions = 0;          // learned absolute ones, 0 without
  int64_t position_offset = 0;    // RoBERTa counts from padding_idx + 1
  int64_t padding_id = -1;        // RoBERTa: padding tokens take no position
  bool use_positions = true;      // false: left out
  int64_t types = 0;              // token types, 0 without
  NormSpec norm{NormKind::none};  // applied to the sum
  int64_t image_size = 0, patch_size = 0, channels = 0;  // patches
  bool operator==(const EmbeddingSpec&) const = default;
};

struct OutputSpec {
  HeadKind kind = HeadKind::none;
  int64_t vocabulary = 0;
  int64_t width = 0;  // input width of the vocabulary matrix (ALBERT: the embedding's)
  bool tied = false;  // the vocabulary matrix is the embedding's
  bool bias = false;
  Activation activation = Activation::gelu;
  NormSpec norm{NormKind::none};
  bool operator==(const OutputSpec&) const = default;
};

struct ModelSpec {
  std::string architecture;  // the file of checkpoint/arch/ it came from
  int64_t width = 0;
  int64_t stored_blocks = 0;  // distinct sets of block weights
  PositionKind position = PositionKind::none;
  EmbeddingSpec embedding;
  std::vector<BlockSpec> blocks;
  NormSpec final_norm{NormKind::none};
  OutputSpec output;
  double init_std = 0.02;  // what a random twin is drawn with
  bool operator==(const ModelSpec&) const = default;

  int64_t depth() const { return static_cast<int64_t>(blocks.size()); }
  bool causal() const { return !blocks.empty() && blocks.front().attention.causal; }
  bool pre_norm() const { return !blocks.empty() && blocks.front().norm.place == NormPlace::pre; }
};

std::string_view to_string(NormKind);
std::string_view to_string(NormPlace);
std::string_view to_string(Activation);
std::string_view to_string(MlpKind);
std::string_view to_string(PositionKind);

/// One line per kind of block, canonical: equal specs print equal text.
std::string describe(const ModelSpec& spec);

}  // namespace rankscope
