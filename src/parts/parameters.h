// The names and shapes of a network's parameters, in this project's own naming (TransformerLens letters,
// torch's [out, in] layout). An architecture says where in a checkpoint each one is; a random twin draws each
// one. Knows nothing of torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/model.h"
#include "spec/parameter.h"

namespace rankscope {

/// embed:    W_E [V, e]  W_pos [P, e]  W_type [n, e]  ln.w ln.b [e]  W_map [d, e]  b_map [d]  ln_post.w ..
///           W_patch [d, C*p*p]  b_patch [d]  cls [d]           (patches; W_pos is [patches + 1, d])
///           W_in [e, p]  b_in [e]                              (points of width p)
///           W_conv1 [e, 3 m]  b_conv1  W_conv2 [e, 3 e]  b_conv2 (sounds of m mel bins)
/// block l:  what the programs of its branches have (parts/), and their norms: ln1.w ln1.b ln2.w ln2.b
///           [d] (unit norm: w [1])
///           attn.W_Q [H*d_qk, d]  attn.W_K [KV*d_qk, d]  attn.W_V [KV*d_v, d]  attn.W_O [d, H*d_v]
///           attn.b_Q attn.b_K attn.b_V attn.b_O
///           mlp.W_in [f, d]  mlp.W_gate [f, d]  mlp.W_out [d, f]  mlp.b_in mlp.b_gate mlp.b_out
/// final:    ln_final.w ln_final.b [d]
/// unembed:  W_U [V, w]  b_U [V]   transformed: W_T [w, d]  b_T [w]  ln.w ln.b [w]
///
/// Every parameter the spec needs, in the order of the forward pass. Block names count stored blocks.
std::vector<Parameter> parameters(const ModelSpec& spec);

/// Those of one part: "embed", "blocks.3", "ln_final", "unembed".
std::vector<Parameter> parameters_of(const ModelSpec& spec, const std::string& part);

int64_t parameter_count(const ModelSpec& spec);

/// Numbers [first, first + count) of a parameter at the start: a function of seed, name and index.
void draw(const Parameter& parameter, const ModelSpec& spec, uint64_t seed, int64_t first, int64_t count,
          float* out);

/// Floating-point operations of one forward pass over one sequence, 2 per multiply-add; softmax, norms and
/// activations not counted. `queries` of the last stream look at `tokens` of a source where there is one.
double forward_flops(const ModelSpec& spec, int64_t tokens, int64_t queries = 0);
/// Of one block on one sequence.
double block_flops(const ModelSpec& spec, const BlockSpec& block, int64_t tokens);

}  // namespace rankscope
