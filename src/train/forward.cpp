#include "train/forward.h"

#include "ops/linear.h"
#include "ops/mlp.h"
#include "ops/projected_attention.h"
#include "ops/skip_norm.h"
#include "ops/small_attention.h"

namespace rankscope {
namespace {

using at::Tensor;

class Pass {
 public:
  Pass(const std::vector<const NetworkSpec*>& specs, const ParameterViews& parameters)
      : n_(*specs.front()), p_(parameters) {
    for (const NetworkSpec* spec : specs) {
      shape_.heads.push_back(static_cast<int32_t>(spec->total_heads()));
      shape_.scale.push_back(static_cast<float>(spec->score_scale));
    }
    shape_.width_qk = n_.total_heads() * n_.rank;
    shape_.width_v = n_.encoder ? n_.total_heads() * n_.v_rank : n_.width();
    shape_.hard = n_.hard;
    shape_.shared_values = !n_.encoder;
  }

  Tensor encoder(const TaskBatch& batch) {
    Tensor x = with_positions(batch.tokens);
    x = rows(x);
    if (n_.embed > 0) x = linear(x, p_.get("embed.W_map"), p_.get_or_none("embed.b_map"));
    if (n_.embed > 0 && n_.positions == Positions::additive) x = add_positions(x);
    for (int64_t l = 0; l < n_.layers; ++l) x = block(x, fmt::format("blocks.{}.", l));
    if (n_.place == NormPlace::pre) x = norm(x, {}, "ln_final");
    if (batch.last_token) x = x.unflatten(-2, {-1, n_.tokens}).select(-2, n_.tokens - 1);
    x = n_.embed > 0 ? linear(x, p_.get("unembed.W_U"), p_.get_or_none("unembed.b_U"))
                     : x.narrow(-1, 0, n_.answer_width);
    return x.reshape(batch.target.sizes());
  }

  Tensor layer(const TaskBatch& batch) {
    const Tensor keys = with_positions(batch.tokens);
    const Tensor asks = batch.queries.defined() ? batch.queries : batch.tokens;
    // A query has no place: zeros stand where a key has its position.
    const int64_t extra = n_.width() - n_.token_width;
    const Tensor queries = extra > 0 ? at::constant_pad_nd(asks, {0, extra}) : asks;
    const Tensor q = linear(rows(queries), p_.get("blocks.0.attn.W_Q"), p_.get_or_none("blocks.0.attn.b_Q"));
    const Tensor x = rows(keys);
    const Tensor k = linear(x, p_.get("blocks.0.attn.W_K"), Tensor());
    const Tensor z = small_attention(q, k, x, asks.size(-2), keys.size(-2), shape_);
    return linear(z, p_.get("blocks.0.attn.W_O"), Tensor()).reshape(batch.target.sizes());
  }

 private:
  static Tensor rows(const Tensor& x) { return x.flatten(-3, -2); }

  Tensor with_positions(const Tensor& tokens) {
    if (n_.positions == Positions::none || n_.embed > 0) return tokens;
    const Tensor pos = p_.get("embed.W_pos").unsqueeze(-3);  // [.., 1, tokens, width]
    if (n_.positions == Positions::additive) return tokens + pos;
    std::vector<int64_t> shape = tokens.sizes().vec();
    shape.back() = n_.position_width;
    return at::cat({tokens, pos.expand(shape)}, -1);
  }
  Tensor add_positions(const Tensor& x) {
    const Tensor pos = p_.get("embed.W_pos").unsqueeze(-3);
    return (x.unflatten(-2, {-1, n_.tokens}) + pos).flatten(-3, -2);
  }

  Tensor block(const Tensor& x, const std::string& b) {
    const bool pre = n_.place == NormPlace::pre;
    const Tensor a = attention(pre ? norm(x, {}, b + "ln1") : x, b);
    const Tensor u = pre ? x + a : norm(x, a, b + "ln1");
    if (n_.mlp == 0) return u;
    const Tensor m = mlp(pre ? norm(u, {}, b + "ln2") : u, b);
    return pre ? u + m : norm(u, m, b + "ln2");
  }

  Tensor attention(const Tensor& x, const std::string& b) {
    const Tensor z = projected_self_attention(x, p_.get(b + "attn.W_QKV"), p_.get_or_none(b + "attn.b_QKV"),
                                              n_.tokens, shape_);
    // The modules are averaged. Their output biases start equal and get equal gradients, so one stands for
    // all.
    const Tensor W_O = p_.get(b + "attn.W_O");
    return linear(z, n_.modules == 1 ? W_O : W_O * (1.0 / static_cast<double>(n_.modules)),
                  p_.get_or_none(b + "attn.b_O"));
  }

  Tensor mlp(const Tensor& x, const std::string& b) {
    return rankscope::mlp(x, p_.get(b + "mlp.W_in"), p_.get_or_none(b + "mlp.b_in"), p_.get(b + "mlp.W_out"),
                          p_.get_or_none(b + "mlp.b_out"));
  }

  // norm(x + u), u undefined where there is no skip.
  Tensor norm(const Tensor& x, const Tensor& u, const std::string& name) {
    switch (n_.norm) {
      case NormKind::none:
        break;
      case NormKind::unit:
        return skip_norm(SkipNorm::Kind::unit, x, u, p_.get(name + ".w"), {});
      case NormKind::rms:
        return skip_norm(SkipNorm::Kind::rms, x, u, p_.get(name + ".w"), {});
      case NormKind::layer:
        return skip_norm(SkipNorm::Kind::layer, x, u, p_.get(name + ".w"), p_.get(name + ".b"));
    }
    return u.defined() ? x + u : x;
  }

  const NetworkSpec& n_;
  const ParameterViews& p_;
  HeadShape shape_;
};

}  // namespace

ParameterViews::ParameterViews(const Layout& layout, const Tensor& flat, bool gradients) {
  const auto& slots = layout.slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    std::string name = slots[i].parameter.name;
    std::vector<int64_t> shape = slots[i].parameter.shape;
    const int64_t offset = slots[i].offset;
    // Q, K and V lie side by side: one leaf, so that one product serves all three.
    if (name.ends_with("_Q") && i + 2 < slots.size() && slots[i + 2].parameter.name.ends_with("_V")) {
      shape[0] += slots[i + 1].parameter.shape[0] + slots[i + 2].parameter.shape[0];
      name += "KV";
      i += 2;
    }
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    if (flat.dim() == 2) shape.insert(shape.begin(), flat.size(0));
    Tensor leaf = flat.narrow(-1, offset, count)
                      .unflatten(-1, {shape.data() + flat.dim() - 1, shape.size() - flat.dim() + 1})
                      .detach();
    leaf.requires_grad_(gradients);
    index_[name] = leaves_.size();
    leaves_.push_back(std::move(leaf));
    offsets_.push_back(offset);
  }
}

const Tensor& ParameterViews::get(const std::string& name) const { return leaves_[index_.at(name)]; }

Tensor ParameterViews::get_or_none(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? Tensor() : leaves_[found->second];
}

Tensor forward(const std::vector<const NetworkSpec*>& specs, const ParameterViews& parameters,
               const TaskBatch& batch) {
  Pass pass(specs, parameters);
  return specs.front()->encoder ? pass.encoder(batch) : pass.layer(batch);
}

Tensor squared_error(const Tensor& answers, const Tensor& target) {
  return (answers - target).square().sum(-1).mean(-1);
}

}  // namespace rankscope
