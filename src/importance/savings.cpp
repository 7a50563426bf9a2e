#include "importance/savings.h"

#include <map>

#include "importance/factored.h"
#include "model/states.h"
#include "parts/program.h"

namespace rankscope {
namespace {

BranchSpec without(BranchSpec branch, const std::vector<int64_t>& heads) {
  branch.attention()->heads_off = heads;
  return branch;
}

std::vector<int64_t> heads_of(const HeadSet& out, int64_t layer) {
  std::vector<int64_t> heads;
  for (const auto& [l, head] : out)
    if (l == layer) heads.push_back(head);
  return heads;
}

// By the stored weights that they use; blocks without attention are left out.
std::map<int64_t, std::vector<int64_t>> layers_by_weights(const ModelSpec& spec) {
  std::map<int64_t, std::vector<int64_t>> out;
  for (int64_t l = 0; l < spec.depth(); ++l) {
    const BlockSpec& block = spec.blocks[static_cast<size_t>(l)];
    if (block.attention_branch() != nullptr) out[block.weights].push_back(l);
  }
  return out;
}

}  // namespace

int64_t needed_of(const Parameter& parameter, const AttentionSpec& attention) {
  const int64_t all = element_count(parameter);
  if (parameter.head_axis < 0) return all;
  return parameter.per_kv_head ? all / attention.kv_heads * kv_heads_read(attention)
                               : all / attention.heads * heads_kept(attention);
}

int64_t needed_by_heads(const BranchSpec& branch, int64_t width) {
  int64_t total = 0;
  for (const Parameter& p : program_of(branch, width).parameters)
    if (p.head_axis >= 0) total += needed_of(p, *branch.attention());
  return total;
}

int64_t cached_of_a_token(const BranchSpec& branch, int64_t width) {
  const AttentionSpec& a = *branch.attention();
  if (keeps_state(a) || heads_kept(a) == 0) return 0;
  int64_t latent = 0;  // and the key that positions turn, which all heads share
  for (const Parameter& p : program_of(branch, width).parameters)
    if (p.name.ends_with(".W_KV_latent") || p.name.ends_with(".W_K_rotated")) latent += p.shape[0];
  return latent > 0 ? latent : kv_heads_read(a) * (a.d_qk + (a.value_map ? a.d_v : 0));
}

int64_t parameters_saved(const ModelSpec& spec, const HeadSet& out) {
  int64_t total = 0;
  for (const auto& [weights, layers] : layers_by_weights(spec)) {
    std::map<int64_t, size_t> times;  // that a head is out
    for (const int64_t l : layers)
      for (const int64_t head : heads_of(out, l)) ++times[head];
    std::vector<int64_t> unused;
    for (const auto& [head, count] : times)
      if (count == layers.size()) unused.push_back(head);
    const BranchSpec& branch = *spec.blocks[static_cast<size_t>(layers.front())].attention_branch();
    total += needed_by_heads(without(branch, {}), spec.width) -
             needed_by_heads(without(branch, unused), spec.width);
  }
  return total;
}

double cache_saved(const ModelSpec& spec, const HeadSet& out) {
  int64_t left = 0, all = 0;
  for (int64_t l = 0; l < spec.depth(); ++l)
    if (const BranchSpec* branch = spec.blocks[static_cast<size_t>(l)].attention_branch()) {
      left += cached_of_a_token(without(*branch, heads_of(out, l)), spec.width);
      all += cached_of_a_token(without(*branch, {}), spec.width);
    }
  return all > 0 ? static_cast<double>(all - left) / static_cast<double>(all) : 0;
}

}  // namespace rankscope
