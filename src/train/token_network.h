// The post-norm self-attention network of the experiments on paths: an embedding that ends in a LayerNorm,
// layers x <- LN(x + attention(x)), perhaps with MLPs, and a linear answer at every token.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "model/parameters.h"
#include "model/spec.h"

namespace rankscope {

struct TokenNetwork {
  int64_t layers = 6, heads = 2, width = 48;
  int64_t vocabulary = 0;   // 0: tokens are points of the plane
  int64_t positions = 0;    // learned ones, 0 without
  bool deep_input = false;  // points: Linear, GELU, Linear instead of one Linear
  bool mlp = false;         // of the network's width, with its own skip and norm
  bool skip = true;         // around attention
  int64_t outputs = 2;
  bool operator==(const TokenNetwork&) const = default;
};

/// Refuses heads that do not divide the width.
void check(const TokenNetwork& network);

/// The same network over a table of `vocabulary` tokens, their input maps folded into it.
ModelSpec model_spec(const TokenNetwork& network, int64_t vocabulary);

/// In the order of the flat buffer. Words: embed.W_E, W_pos, W_map, b_map; points: embed.W_in, b_in and,
/// deep, W_map, b_map; then embed.ln, the blocks and unembed, as model/parameters.h names them.
std::vector<Parameter> token_parameters(const TokenNetwork& network);
int64_t parameter_count(const TokenNetwork& network);

/// Normal with deviation 0.02, biases zero, gains one; W_V and W_O uniform in +-1/sqrt(width).
std::vector<float> initial_parameters(const TokenNetwork& network, uint64_t seed);

/// The parameters of a flat buffer by name. Q, K and V lie side by side and are one: "attn.W_QKV".
class TokenParameters {
 public:
  /// Views of `flat`; with `gradients` each is a leaf of the graph.
  TokenParameters(const TokenNetwork& network, const at::Tensor& flat, bool gradients);
  const at::Tensor& get(const std::string& name) const;
  const std::vector<at::Tensor>& leaves() const { return leaves_; }  // in the buffer's order

 private:
  std::vector<at::Tensor> leaves_;
  std::map<std::string, size_t> index_;
};

/// Sequences side by side; exactly one of ids and points.
struct TokenBatch {
  at::Tensor ids;      // [S, T]
  at::Tensor points;   // [S, T, 2]
  at::Tensor padding;  // [S, T] true where a sequence has ended; undefined where none is shorter
};

/// What is taken out in training: a function of the seed.
struct Dropout {
  double share = 0;
  uint64_t seed = 0;
};

/// Before the LayerNorm of the embedding and without positions: [.., width] for ids or points [.., 2].
at::Tensor token_input(const TokenNetwork& network, const TokenParameters& parameters,
                       const TokenBatch& batch);

/// [S * T, outputs].
at::Tensor token_forward(const TokenNetwork& network, const TokenParameters& parameters,
                         const TokenBatch& batch, const Dropout& dropout = {});

/// Of one sequence, forward; 2 per multiply-add, softmax and norms not counted.
double forward_flops(const TokenNetwork& network, int64_t tokens);
/// Of one layer that has only so many of its heads.
double layer_flops(const TokenNetwork& network, int64_t heads, int64_t tokens);

}  // namespace rankscope
