#include "train/fused_forward.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "ops/linear.h"
#include "ops/mlp.h"
#include "ops/projected_attention.h"
#include "ops/skip_norm.h"
#include "ops/small_attention.h"
#include "spec/steps.h"
#include "train/networks.h"

namespace rankscope {
namespace {

using at::Tensor;

// The description made of the words that this file reads, everything else as it is by default.
AttentionSpec known(const AttentionSpec& a) {
  AttentionSpec out;
  out.variant = a.variant == "hard" ? "hard" : "softmax";
  out.heads = out.kv_heads = a.heads;
  out.d_qk = a.d_qk;
  out.d_v = a.d_v;
  out.modules = a.modules;
  out.scale = a.scale;
  out.bias = out.output_bias = a.bias;
  return out;
}

ModelSpec known_encoder(const ModelSpec& s) {
  const BlockSpec& block = s.blocks.front();
  const BranchSpec* mlp = block.mlp_branch();
  const NormPlace place = s.pre_norm() ? NormPlace::pre : NormPlace::post;
  const BranchSpec& attention = *block.attention_branch();
  const NormSpec norm = fused_norm((s.pre_norm() ? attention.before : attention.behind).kind);
  const AttentionSpec a = known(*attention.attention());
  const MlpSpec hidden{.width = mlp ? mlp->mlp()->width : 0, .activation = Activation::relu, .bias = a.bias};
  ModelSpec out = points_encoder(s.embedding.points, classic_block(place, norm, a, mlp ? "mlp" : "", hidden),
                                 s.depth(), s.output.channels);
  out.width = s.width;
  out.embedding.point_map = s.embedding.point_map;
  out.embedding.bias = !s.embedding.point_map || a.bias;
  out.embedding.width = s.embedding.point_map ? s.width : s.embedding.points;
  out.embedding.positions = s.embedding.positions;
  out.embedding.position_width = s.embedding.point_map ? 0 : s.embedding.position_width;
  out.position = s.position;
  if (s.output.kind == HeadKind::linear)
    out.output = {
        .kind = HeadKind::linear, .vocabulary = s.output.vocabulary, .width = s.width, .bias = a.bias};
  out.output.last_token = s.output.last_token;
  return out;
}

ModelSpec known_layer(const ModelSpec& s) {
  const AttentionSpec& a = s.blocks.front().attention();
  const EmbeddingSpec& e = s.sources.front().embedding;
  ModelSpec out = points_layer(s.embedding.points, a.heads, a.d_qk, a.scale, a.output_width, e.positions,
                               e.position_width, a.bias);
  out.blocks.front().attention().variant = a.variant == "hard" ? "hard" : "softmax";
  out.position = s.position;
  return out;
}

SkipNorm::Kind kernel_of(NormKind kind) {
  return kind == NormKind::unit  ? SkipNorm::Kind::unit
         : kind == NormKind::rms ? SkipNorm::Kind::rms
                                 : SkipNorm::Kind::layer;
}

// Interprets the steps of every block with one operator a step.
class Fused {
 public:
  Fused(const std::vector<const ModelSpec*>& specs, const ParameterViews& parameters)
      : n_(*specs.front()), p_(parameters) {
    for (const ModelSpec* spec : specs) {
      const AttentionSpec& a = spec->blocks.front().attention();
      shape_.heads.push_back(static_cast<int32_t>(a.heads));
      shape_.scale.push_back(static_cast<float>(a.scale));
    }
    const AttentionSpec& a = n_.blocks.front().attention();
    shape_.width_qk = a.heads * a.d_qk;
    shape_.width_v = a.value_map ? a.heads * a.d_v : n_.width;
    shape_.hard = a.variant == "hard";
    shape_.shared_values = !a.value_map;
  }

  Tensor encoder(const TaskBatch& batch) {
    tokens_ = batch.tokens.size(-2);
    const EmbeddingSpec& e = n_.embedding;
    Tensor x = rows(e.point_map ? batch.tokens : placed(batch.tokens, e, "embed.W_pos"));
    if (e.point_map) {
      x = linear(x, p_.get("embed.W_in"), p_.get_or_none("embed.b_in"));
      if (e.positions > 0) x = rows(x.unflatten(-2, {-1, tokens_}) + p_.get("embed.W_pos").unsqueeze(-3));
    }
    for (int64_t l = 0; l < n_.depth(); ++l) x = block(x, n_.blocks[static_cast<size_t>(l)], l);
    x = norm(x, {}, n_.final_norm, "ln_final");
    if (n_.output.last_token) x = x.unflatten(-2, {-1, tokens_}).select(-2, tokens_ - 1);
    x = n_.output.kind == HeadKind::linear ? linear(x, p_.get("unembed.W_U"), p_.get_or_none("unembed.b_U"))
                                           : x.narrow(-1, 0, n_.output.channels);
    return x.reshape(batch.target.sizes());
  }

  Tensor layer(const TaskBatch& batch) {
    const Tensor keys = placed(batch.tokens, n_.sources.front().embedding, kPoints + ".embed.W_pos");
    const Tensor asks = batch.queries.defined() ? batch.queries : batch.tokens;
    // A query has no place: zeros stand where a key has its position.
    const int64_t extra = n_.embedding.position_width;
    const Tensor queries = extra > 0 ? at::constant_pad_nd(asks, {0, extra}) : asks;
    const Tensor q = linear(rows(queries), p_.get("blocks.0.attn.W_Q"), p_.get_or_none("blocks.0.attn.b_Q"));
    const Tensor x = rows(keys);
    const Tensor k = linear(x, p_.get("blocks.0.attn.W_K"), Tensor());
    const Tensor z = small_attention(q, k, x, asks.size(-2), keys.size(-2), shape_);
    return linear(z, p_.get("blocks.0.attn.W_O"), Tensor()).reshape(batch.target.sizes());
  }

 private:
  static Tensor rows(const Tensor& x) { return x.flatten(-3, -2); }

  Tensor placed(const Tensor& tokens, const EmbeddingSpec& e, const std::string& name) {
    if (e.positions == 0) return tokens;
    const Tensor pos = p_.get(name).unsqueeze(-3);  // [.., 1, tokens, width]
    if (e.position_width == 0) return tokens + pos;
    std::vector<int64_t> shape = tokens.sizes().vec();
    shape.back() = e.position_width;
    return at::cat({tokens, pos.expand(shape)}, -1);
  }

  Tensor block(const Tensor& x, const BlockSpec& spec, int64_t l) {
    const std::string b = fmt::format("blocks.{}.", l);
    Tensor stream = x, value;
    for (const Step& step : steps_of(spec)) {
      switch (step.kind) {
        case Step::Kind::read:
          value = norm(stream, {}, step.norm, b + step.norm_name);
          break;
        case Step::Kind::run:
          value =
              std::holds_alternative<AttentionSpec>(step.part.words) ? attention(value, b) : mlp(value, b);
          break;
        case Step::Kind::write:
          break;
        case Step::Kind::join:
          stream = norm(stream, value, step.norm, b + step.norm_name);
          break;
      }
    }
    return stream;
  }

  Tensor attention(const Tensor& x, const std::string& b) {
    const Tensor z = projected_self_attention(x, p_.get(b + "attn.W_QKV"), p_.get_or_none(b + "attn.b_QKV"),
                                              tokens_, shape_);
    // The modules are averaged. Their output biases start equal and get equal gradients, so one stands for
    // all.
    const Tensor W_O = p_.get(b + "attn.W_O");
    const int64_t modules = n_.blocks.front().attention().modules;
    return linear(z, modules == 1 ? W_O : W_O * (1.0 / static_cast<double>(modules)),
                  p_.get_or_none(b + "attn.b_O"));
  }

  Tensor mlp(const Tensor& x, const std::string& b) {
    return rankscope::mlp(x, p_.get(b + "mlp.W_in"), p_.get_or_none(b + "mlp.b_in"), p_.get(b + "mlp.W_out"),
                          p_.get_or_none(b + "mlp.b_out"));
  }

  // norm(x + u), u undefined where there is nothing to add.
  Tensor norm(const Tensor& x, const Tensor& u, const NormSpec& spec, const std::string& name) {
    if (!spec.acts()) return u.defined() ? x + u : x;
    return skip_norm(kernel_of(spec.kind), x, u, p_.get(name + ".w"), p_.get_or_none(name + ".b"));
  }

  const ModelSpec& n_;
  const ParameterViews& p_;
  HeadShape shape_;
  int64_t tokens_ = 0;
};

}  // namespace

bool fused_forward_covers(const ModelSpec& spec) {
  if (spec.blocks.empty() || spec.embedding.points == 0 || !spec.blocks.front().attention_branch())
    return false;
  ModelSpec expected = asks_separately(spec) ? known_layer(spec) : known_encoder(spec);
  expected.init = spec.init;  // how it started makes no difference to what it computes
  return spec == expected;
}

Tensor fused_forward(const std::vector<const ModelSpec*>& specs, const ParameterViews& parameters,
                     const TaskBatch& batch) {
  Fused pass(specs, parameters);
  return asks_separately(*specs.front()) ? pass.layer(batch) : pass.encoder(batch);
}

}  // namespace rankscope
