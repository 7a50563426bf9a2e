// What a network is, as a value. BERT, Llama, ViT and every network that a study trains are values of
// ModelSpec; taking a part out or cutting a rank is an edit of it. Knows nothing of torch, so reading a
// config stays cheap.
//
// A network is an embedding, blocks, a final norm and a readout. A block is a list of branches. A branch
// reads the stream through a norm, runs one part (attention, an MLP, ...) and joins what the part wrote with
// the stream:
//
//   post-norm   x = behind(x + part(x))             BERT: behind is the LayerNorm, before is none
//   pre-norm    x = x + part(before(x))             GPT-2, Llama
//   both        x = x + inside(part(before(x)))     Gemma 2: inside norms what the part wrote
//
// Branches run one after another. In a parallel block they all read what the block was given, and their
// outputs are added up:
//
//   in turn       u = x + attn(N1 x),  y = u + mlp(N2 u)
//   in parallel   y = x + attn(N1 x) + mlp(N2 x)
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "spec/words.h"

namespace rankscope {

struct NormSpec {
  NormKind kind = NormKind::none;
  double epsilon = 1e-12;
  bool off = false;  // taken out: the tokens pass as they are, the place stays
  bool gain = true;  // false: none is learned
  bool bias = true;  // layer: false: none is learned
  bool operator==(const NormSpec&) const = default;
  bool there() const { return kind != NormKind::none; }
  bool acts() const { return there() && !off; }
};

struct AttentionSpec {
  std::string variant = "softmax";  // a file of attention/: how scores become a pattern
  int64_t heads = 1;
  int64_t kv_heads = 1;   // query head h reads KV head h / (heads / kv_heads)
  int64_t d_qk = 1;       // width of a query or key: the rank of a head's QK map
  int64_t d_v = 1;        // width of a value: the rank of a head's OV map
  int64_t modules = 1;    // the heads come in this many groups whose outputs are averaged
  double scale = 1.0;     // multiplies the scores
  double softcap = 0.0;   // > 0: a score s becomes softcap tanh(s / softcap)
  NormSpec qk_norm = {};  // on queries and keys, before positions turn them
  NormSpan qk_norm_span = NormSpan::head;
  bool causal = false;
  int64_t window = 0;                           // > 0: a query sees only keys less than this far away
  bool positions = true;                        // false: rotary or relative terms left out
  std::vector<double> rotary_frequencies = {};  // one per rotated pair; empty without RoPE
  bool rotary_adjacent = false;                 // pairs are channels 2i and 2i + 1, not i and i + n/2
  double rotary_scale = 1.0;                    // multiplies cos and sin (YaRN-like scalings)
  int64_t rotary_context = 0;                   // > 0: texts of more tokens than this turn differently,
  std::vector<double> rotary_long = {};         // by these frequencies (longrope),
  double rotary_growth = 0.0;                   // or by a base that grows with the text, this fast (dynamic)
  std::vector<double> alibi = {};  // per head, what a score gains with every token nearer its key is
  bool alibi_rounded = false;      // Falcon: slope times the key's place in bfloat16, scaled like scores
  int64_t buckets = 0;             // > 0: ranges of distance, each with a learned bias per head on the scores
  int64_t bucket_distance = 0;     // from here on all distances fall into the last one
  bool sinks = false;    // a learned score per head for a key without a value: rows sum to less than one
  bool bias = true;      // biases on Q, K, V
  bool key_bias = true;  // false: none on K
  bool output_bias = true;
  bool value_map = true;                  // false: every head's values are the tokens themselves
  int64_t output_width = 0;               // of what it writes; 0: the stream's
  std::vector<int64_t> heads_off = {};    // heads whose output is set to zero
  std::vector<int64_t> heads_fixed = {};  // heads that carry the same numbers whatever the tokens,
  std::vector<double> fixed_values = {};  // these: d_v for each of them
  int64_t truncate_qk = 0;                // > 0: each head's QK map cut to this rank
  int64_t truncate_ov = 0;
  bool operator==(const AttentionSpec&) const = default;
};

struct MlpSpec {
  int64_t width = 0;  // of the hidden layer
  Activation activation = Activation::gelu;
  bool bias = true;
  double share_scale = 1.0;               // experts: multiplies what a token takes of each
  std::vector<int64_t> experts_off = {};  // experts that write zero
  bool operator==(const MlpSpec&) const = default;
};

/// What a branch runs: a file of parts/, the words its kind has, and options of its own.
struct PartSpec {
  std::string name = "attention";
  std::variant<AttentionSpec, MlpSpec> words = {};
  std::map<std::string, double> options =
      {};  // what the part's file declares; only what differs from default
  bool operator==(const PartSpec&) const = default;
};

struct BranchSpec {
  std::string name = {};       // "attn", "mlp": in front of its parameters and sites
  std::string norm_name = {};  // "ln1": of the norm before or behind; the one inside adds "_post"
  NormSpec before = {};        // on what the part reads
  PartSpec part = {};
  NormSpec inside = {};        // on what the part wrote
  double scale = 1.0;          // multiplies what is added to the stream
  bool channel_scale = false;  // so does a learned number per channel (DINO's layer scale)
  bool skip = true;            // false: the stream is replaced by what the part wrote
  bool skip_normed = false;    // the skip takes what the norm before made (a choice of BLOOM)
  NormSpec behind = {};        // on the sum
  std::string reads = {};      // attention: keys and values come from this stream; empty: from its own
  bool operator==(const BranchSpec&) const = default;

  const AttentionSpec* attention() const { return std::get_if<AttentionSpec>(&part.words); }
  AttentionSpec* attention() { return std::get_if<AttentionSpec>(&part.words); }
  const MlpSpec* mlp() const { return std::get_if<MlpSpec>(&part.words); }
  MlpSpec* mlp() { return std::get_if<MlpSpec>(&part.words); }
};

struct BlockSpec {
  std::vector<BranchSpec> branches;
  bool parallel = false;
  int64_t weights = 0;  // which stored block this one uses (ALBERT shares one)
  bool operator==(const BlockSpec&) const = default;

  /// The first branch of that kind; nullptr where there is none.
  const BranchSpec* attention_branch() const;
  BranchSpec* attention_branch();
  const BranchSpec* mlp_branch() const;
  BranchSpec* mlp_branch();
  /// The words of the first attention; an error where the block has none.
  const AttentionSpec& attention() const;
  AttentionSpec& attention();
};

struct EmbeddingSpec {
  int64_t vocabulary = 0;         // words; 0: patches, or points or sounds where those say so
  int64_t start_id = -1;          // words: the one a decoder reads before its first; -1: none
  int64_t points = 0;             // width of a point; 0: words or patches
  int64_t sounds = 0;             // mel bins of a frame: two convolutions make one token of two frames
  bool point_map = false;         // points: W_in takes them to `width`
  bool point_activation = false;  // points: GELU behind W_in
  bool bias = true;               // points: b_in; patches: b_patch
  int64_t width = 0;              // before the map to the model's width; equal to it when there is no map
  double scale = 1.0;             // words: multiplies their vectors (Gemma, Granite)
  bool map = false;               // ALBERT's 128 -> 768
  bool map_bias = true;
  bool map_first = false;       // positions are added behind the map (OPT), not before it
  int64_t positions = 0;        // learned absolute ones, 0 without
  int64_t position_width = 0;   // > 0: concatenated behind the token instead of added to it
  int64_t position_offset = 0;  // RoBERTa counts from padding_idx + 1
  int64_t padding_id = -1;      // RoBERTa: padding tokens take no position
  bool padding_counts = true;   // false: nor do they here, as the mask tells (only padded files care)
  bool use_positions = true;    // false: left out
  int64_t types = 0;            // token types, 0 without
  NormSpec norm = {};           // on the sum, before the map
  NormSpec norm_behind = {};    // behind the map
  int64_t image_size = 0, patch_size = 0, channels = 0;  // patches
  int64_t class_tokens = 1;  // patches: learned tokens in front, with positions (DeiT has two)
  int64_t registers = 0;     // patches: learned tokens behind those, without positions
  bool operator==(const EmbeddingSpec&) const = default;

  int64_t extra_tokens() const { return sounds > 0 ? 0 : class_tokens + registers; }
  int64_t patch_tokens() const;   // tokens of an image, extra ones included
  int64_t given_tokens() const;   // tokens of a sample that is an image or a sound
  int64_t given_numbers() const;  // and the numbers it comes in
};

struct OutputSpec {
  HeadKind kind = HeadKind::none;
  int64_t vocabulary = 0;  // rows of the vocabulary matrix
  int64_t width = 0;       // input width of the vocabulary matrix (ALBERT: the embedding's)
  bool tied = false;       // the vocabulary matrix is the embedding's
  bool bias = false;
  bool map_bias = true;  // transformed: of the dense map
  Activation activation = Activation::gelu;
  NormSpec norm = {};
  double scale = 1.0;       // multiplies what the vocabulary matrix reads
  double softcap = 0.0;     // > 0: a logit z becomes softcap tanh(z / softcap)
  bool last_token = false;  // read off the last token only
  int64_t channels = 0;     // > 0: the answer is the first channels of the stream
  bool operator==(const OutputSpec&) const = default;
};

struct InitSpec {
  InitKind kind = InitKind::normal;
  double std = 0.02;
  bool same_blocks = false;  // every block starts as a copy of the first
  double cut = 0;            // > 0: normal numbers stay within so many deviations
  /// Parameters whose names end so ("W_O", "embed.W_E", "cls") start with another deviation, or as one number
  /// ("layer_scale"). The longest ending counts.
  std::map<std::string, double> stds = {}, constants = {};
  bool operator==(const InitSpec&) const = default;
};

/// Tokens on their way through blocks.
struct StreamSpec {
  std::string name;  // "encoder"; empty for the one that ends in the readout
  EmbeddingSpec embedding;
  std::vector<BlockSpec> blocks;
  NormSpec final_norm;
  int64_t stored_blocks = 0;  // distinct sets of block weights
  bool operator==(const StreamSpec&) const = default;

  int64_t depth() const { return static_cast<int64_t>(blocks.size()); }
  bool causal() const;
  bool pre_norm() const;  // attention reads through a norm
};

struct ModelSpec : StreamSpec {
  std::string architecture;  // the file of checkpoint/arch/ it came from
  int64_t width = 0;
  PositionKind position = PositionKind::none;
  OutputSpec output;
  InitSpec init;                    // how a random twin is drawn
  std::vector<StreamSpec> sources;  // streams that run first, for branches that read them
  bool operator==(const ModelSpec&) const = default;
};

/// Blocks of one attention and at most one MLP, as nearly all are: "attn" with norm "ln1", "mlp" with "ln2".
/// `mlp_part` is the file of parts/ ("mlp", "gated_mlp"); empty: no MLP.
enum class NormPlace { pre, post };
BlockSpec classic_block(NormPlace place, const NormSpec& norm, const AttentionSpec& attention,
                        const std::string& mlp_part = "mlp", const MlpSpec& mlp = {});

/// One line per kind of block, canonical: equal specs print equal text.
std::string describe(const ModelSpec& spec);

}  // namespace rankscope
