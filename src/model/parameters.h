// The names and shapes of a model's parameters, in this project's own naming (TransformerLens letters,
// torch's [out, in] layout). An architecture says where in a checkpoint each one is; a random twin draws each
// one. Knows nothing of torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/spec.h"

namespace rankscope {

/// embed:    W_E [V, e]  W_pos [P, e]  W_type [n, e]  ln.w ln.b [e]  W_map [d, e]  b_map [d]
///           W_patch [d, C*p*p]  b_patch [d]  cls [d]           (patches; W_pos is [patches + 1, d])
/// block l:  attn.W_Q [H*d_qk, d]  attn.W_K [KV*d_qk, d]  attn.W_V [KV*d_v, d]  attn.W_O [d, H*d_v]
///           attn.b_Q attn.b_K attn.b_V attn.b_O   ln1.w ln1.b ln2.w ln2.b [d] (unit norm: w [1])
///           mlp.W_in [f, d]  mlp.W_gate [f, d]  mlp.W_out [d, f]  mlp.b_in mlp.b_gate mlp.b_out
///           relative positions: attn.W_R [H*d_qk, d]  attn.r_w_bias attn.r_r_bias attn.r_s_bias [H*d_qk]
///           attn.seg_embed [2, H*d_qk]
/// final:    ln_final.w ln_final.b [d]
/// unembed:  W_U [V, w]  b_U [V]   transformed: W_T [w, d]  b_T [w]  ln.w ln.b [w]
struct Parameter {
  std::string name;            // "embed.W_E", "blocks.3.attn.W_Q", "ln_final.w", "unembed.W_U"
  std::vector<int64_t> shape;  // one or two dimensions
  enum class Role { matrix, bias, gain } role = Role::matrix;
};

/// Every parameter the spec needs, in the order of the forward pass. Block names count stored blocks.
std::vector<Parameter> parameters(const ModelSpec& spec);

/// Those of one part: "embed", "blocks.3", "ln_final", "unembed".
std::vector<Parameter> parameters_of(const ModelSpec& spec, const std::string& part);

int64_t element_count(const Parameter& p);

}  // namespace rankscope
