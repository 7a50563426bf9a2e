#include "model/parameters.h"

#include <fmt/format.h>

namespace rankscope {
namespace {

using Role = Parameter::Role;

class List {
 public:
  explicit List(std::string part) : part_(std::move(part)) {}
  void matrix(const char* name, int64_t rows, int64_t columns) { add(name, {rows, columns}, Role::matrix); }
  void bias(const char* name, int64_t size) { add(name, {size}, Role::bias); }
  /// A vector drawn like a matrix.
  void drawn(const char* name, int64_t size) { add(name, {size}, Role::matrix); }
  void norm(const char* name, const NormSpec& norm, int64_t size) {
    if (norm.kind == NormKind::none) return;
    const std::string stem = *name == '\0' ? "" : std::string(name) + ".";
    add(stem + "w", {norm.kind == NormKind::unit ? 1 : size}, Role::gain);
    if (norm.kind == NormKind::layer) add(stem + "b", {size}, Role::bias);
  }
  std::vector<Parameter> take() { return std::move(list_); }

 private:
  void add(const std::string& name, std::vector<int64_t> shape, Role role) {
    list_.push_back({part_ + "." + name, std::move(shape), role});
  }
  std::string part_;
  std::vector<Parameter> list_;
};

std::vector<Parameter> embedding(const ModelSpec& spec) {
  const EmbeddingSpec& e = spec.embedding;
  List list("embed");
  if (e.vocabulary > 0) {
    list.matrix("W_E", e.vocabulary, e.width);
  } else {
    list.matrix("W_patch", e.width, e.channels * e.patch_size * e.patch_size);
    list.bias("b_patch", e.width);
    list.bias("cls", e.width);
  }
  if (e.positions > 0) list.matrix("W_pos", e.positions, e.width);
  if (e.types > 0) list.matrix("W_type", e.types, e.width);
  list.norm("ln", e.norm, e.width);
  if (e.map) {
    list.matrix("W_map", spec.width, e.width);
    list.bias("b_map", spec.width);
  }
  return list.take();
}

const BlockSpec& stored_block(const ModelSpec& spec, int64_t index) {
  for (const BlockSpec& block : spec.blocks)
    if (block.weights == index) return block;
  return spec.blocks.front();
}

std::vector<Parameter> block(const ModelSpec& spec, int64_t index) {
  const BlockSpec& b = stored_block(spec, index);
  const AttentionSpec& a = b.attention;
  const int64_t d = spec.width;
  List list(fmt::format("blocks.{}", index));
  list.norm("ln1", b.norm, d);
  list.matrix("attn.W_Q", a.heads * a.d_qk, d);
  list.matrix("attn.W_K", a.kv_heads * a.d_qk, d);
  list.matrix("attn.W_V", a.kv_heads * a.d_v, d);
  list.matrix("attn.W_O", d, a.heads * a.d_v);
  if (a.bias) {
    list.bias("attn.b_Q", a.heads * a.d_qk);
    list.bias("attn.b_K", a.kv_heads * a.d_qk);
    list.bias("attn.b_V", a.kv_heads * a.d_v);
  }
  if (a.output_bias) list.bias("attn.b_O", d);
  if (spec.position == PositionKind::relative) {
    list.matrix("attn.W_R", a.heads * a.d_qk, d);
    // Called biases, but XLNet draws them like its matrices; at initialisation they outweigh the queries.
    list.drawn("attn.r_w_bias", a.heads * a.d_qk);
    list.drawn("attn.r_r_bias", a.heads * a.d_qk);
    list.drawn("attn.r_s_bias", a.heads * a.d_qk);
    list.matrix("attn.seg_embed", 2, a.heads * a.d_qk);
  }
  if (b.mlp.kind != MlpKind::none) {
    list.norm("ln2", b.norm, d);
    if (b.mlp.kind == MlpKind::activation) return list.take();
    list.matrix("mlp.W_in", b.mlp.width, d);
    if (b.mlp.kind == MlpKind::gated) list.matrix("mlp.W_gate", b.mlp.width, d);
    list.matrix("mlp.W_out", d, b.mlp.width);
    if (b.mlp.bias) {
      list.bias("mlp.b_in", b.mlp.width);
      if (b.mlp.kind == MlpKind::gated) list.bias("mlp.b_gate", b.mlp.width);
      list.bias("mlp.b_out", d);
    }
  }
  return list.take();
}

std::vector<Parameter> final_norm(const ModelSpec& spec) {
  List list("ln_final");
  list.norm("", spec.final_norm, spec.width);
  return list.take();
}

std::vector<Parameter> unembedding(const ModelSpec& spec) {
  const OutputSpec& o = spec.output;
  List list("unembed");
  if (o.kind == HeadKind::transformed) {
    list.matrix("W_T", o.width, spec.width);
    list.bias("b_T", o.width);
    list.norm("ln", o.norm, o.width);
  }
  if (o.kind != HeadKind::none) {
    list.matrix("W_U", o.vocabulary, o.width);
    if (o.bias) list.bias("b_U", o.vocabulary);
  }
  return list.take();
}

}  // namespace

std::vector<Parameter> parameters_of(const ModelSpec& spec, const std::string& part) {
  if (part == "embed") return embedding(spec);
  if (part == "ln_final") return final_norm(spec);
  if (part == "unembed") return unembedding(spec);
  return block(spec, std::stoll(part.substr(std::string("blocks.").size())));
}

std::vector<Parameter> parameters(const ModelSpec& spec) {
  std::vector<Parameter> all = embedding(spec);
  const auto append = [&](std::vector<Parameter> more) { all.insert(all.end(), more.begin(), more.end()); };
  for (int64_t i = 0; i < spec.stored_blocks; ++i) append(block(spec, i));
  append(final_norm(spec));
  append(unembedding(spec));
  return all;
}

int64_t element_count(const Parameter& p) {
  int64_t n = 1;
  for (const int64_t size : p.shape) n *= size;
  return n;
}

}  // namespace rankscope
