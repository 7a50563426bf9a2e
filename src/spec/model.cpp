#include "spec/model.h"

#include <algorithm>

#include "base/error.h"

namespace rankscope {
namespace {

template <class Branches>
auto* first_attention(Branches& branches) {
  const auto it = std::find_if(branches.begin(), branches.end(), [](auto& b) { return b.attention(); });
  return it == branches.end() ? nullptr : &*it;
}

template <class Branches>
auto* first_mlp(Branches& branches) {
  const auto it = std::find_if(branches.begin(), branches.end(), [](auto& b) { return b.mlp(); });
  return it == branches.end() ? nullptr : &*it;
}

}  // namespace

const BranchSpec* BlockSpec::attention_branch() const { return first_attention(branches); }
BranchSpec* BlockSpec::attention_branch() { return first_attention(branches); }
const BranchSpec* BlockSpec::mlp_branch() const { return first_mlp(branches); }
BranchSpec* BlockSpec::mlp_branch() { return first_mlp(branches); }

const AttentionSpec& BlockSpec::attention() const {
  if (const BranchSpec* b = attention_branch()) return *b->attention();
  throw Error("the block has no attention");
}
AttentionSpec& BlockSpec::attention() {
  if (BranchSpec* b = attention_branch()) return *b->attention();
  throw Error("the block has no attention");
}

int64_t EmbeddingSpec::patch_tokens() const {
  const int64_t side = image_size / patch_size;
  return side * side + extra_tokens();
}

int64_t EmbeddingSpec::given_tokens() const { return sounds > 0 ? positions : patch_tokens(); }

int64_t EmbeddingSpec::given_numbers() const {
  return sounds > 0 ? sounds * 2 * positions : channels * image_size * image_size;
}

bool StreamSpec::causal() const {
  return !blocks.empty() && blocks.front().attention_branch() && blocks.front().attention().causal;
}

bool StreamSpec::pre_norm() const {
  if (blocks.empty()) return false;
  // The last block: ModernBERT's first one reads the embedding, which has a norm of its own.
  const BranchSpec* attention = blocks.back().attention_branch();
  return attention && attention->before.there();
}

BlockSpec classic_block(NormPlace place, const NormSpec& norm, const AttentionSpec& attention,
                        const std::string& mlp_part, const MlpSpec& mlp) {
  const bool pre = place == NormPlace::pre;
  const auto branch = [&](const char* name, const char* norm_name, PartSpec part) {
    return BranchSpec{.name = name,
                      .norm_name = norm_name,
                      .before = pre ? norm : NormSpec{},
                      .part = std::move(part),
                      .inside = {},
                      .behind = pre ? NormSpec{} : norm,
                      .reads = {}};
  };
  const std::string part = attention.variant == "relative" ? "relative_attention" : "attention";
  BlockSpec block;
  block.branches.push_back(branch("attn", "ln1", {part, attention, {}}));
  if (!mlp_part.empty()) block.branches.push_back(branch("mlp", "ln2", {mlp_part, mlp, {}}));
  return block;
}

}  // namespace rankscope
