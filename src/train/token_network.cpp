#include "train/token_network.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/philox.h"
#include "base/stream_name.h"

namespace rankscope {
namespace {

using at::Tensor;

constexpr double kNormEpsilon = 1e-12;

class Masks {
 public:
  explicit Masks(const Dropout& dropout)
      : keep_(1 - dropout.share), generator_(at::make_generator<at::CPUGeneratorImpl>(dropout.seed)) {}
  Tensor operator()(const Tensor& x) {
    if (keep_ == 1) return x;
    return x * at::empty_like(x).bernoulli_(keep_, generator_).div_(keep_);
  }

 private:
  double keep_;
  at::Generator generator_;
};

class Pass {
 public:
  Pass(const TokenNetwork& n, const TokenParameters& p, const TokenBatch& batch, const Dropout& dropout)
      : n_(n), p_(p), batch_(batch), drop_(dropout) {
    const Tensor& tokens = batch.ids.defined() ? batch.ids : batch.points;
    S_ = tokens.size(0);
    T_ = tokens.size(1);
    if (batch.padding.defined())
      mask_ = at::zeros({S_, 1, 1, T_}, p.leaves().front().options())
                  .masked_fill_(batch.padding.view({S_, 1, 1, T_}), -std::numeric_limits<double>::infinity());
  }

  Tensor answers() {
    Tensor x = token_input(n_, p_, batch_);
    if (n_.positions > 0) x = x + linear(p_.get("embed.W_pos").narrow(0, 0, T_), p_.get("embed.W_map"), {});
    x = drop_(norm(x.flatten(0, 1), "embed.ln"));
    for (int64_t l = 0; l < n_.layers; ++l) x = block(x, fmt::format("blocks.{}.", l));
    return linear(drop_(x), p_.get("unembed.W_U"), p_.get("unembed.b_U"));
  }

 private:
  static Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b) { return at::linear(x, W, b); }

  Tensor norm(const Tensor& x, const std::string& name) {
    return at::layer_norm(x, {n_.width}, p_.get(name + ".w"), p_.get(name + ".b"), kNormEpsilon);
  }

  Tensor block(const Tensor& x, const std::string& b) {
    const Tensor written = drop_(attention(x, b));
    Tensor u = norm(n_.skip ? written + x : written, b + "ln1");
    if (!n_.mlp) return u;
    const Tensor h = at::gelu(linear(u, p_.get(b + "mlp.W_in"), p_.get(b + "mlp.b_in")));
    return norm(drop_(linear(h, p_.get(b + "mlp.W_out"), p_.get(b + "mlp.b_out"))) + u, b + "ln2");
  }

  Tensor attention(const Tensor& x, const std::string& b) {
    const int64_t H = n_.heads, w = n_.width / H;
    const Tensor qkv = linear(x, p_.get(b + "attn.W_QKV"), p_.get(b + "attn.b_QKV"))
                           .view({S_, T_, 3, H, w})
                           .permute({2, 0, 3, 1, 4});  // [3, S, H, T, w]
    Tensor scores = at::matmul(qkv[0], qkv[1].transpose(-1, -2)) * (1 / std::sqrt(static_cast<double>(w)));
    if (mask_.defined()) scores = scores + mask_;
    const Tensor pattern = drop_(scores.softmax(-1));
    const Tensor z = at::matmul(pattern, qkv[2]).transpose(1, 2).reshape({S_ * T_, n_.width});
    return linear(z, p_.get(b + "attn.W_O"), p_.get(b + "attn.b_O"));
  }

  const TokenNetwork& n_;
  const TokenParameters& p_;
  const TokenBatch& batch_;
  Masks drop_;
  Tensor mask_;
  int64_t S_ = 0, T_ = 0;
};

bool ends_with(const std::string& name, std::string_view end) { return name.ends_with(end); }

// "blocks.0.attn.b_Q" to "blocks.0.attn.b_QKV"; empty for what is no query map.
std::string merged_name(const std::string& name) {
  return ends_with(name, "attn.W_Q") || ends_with(name, "attn.b_Q") ? name + "KV" : "";
}

}  // namespace

void check(const TokenNetwork& n) {
  if (n.width % n.heads != 0)
    throw usage_error(fmt::format("{} heads do not divide the width {}", n.heads, n.width));
}

ModelSpec model_spec(const TokenNetwork& n, int64_t vocabulary) {
  ModelSpec s;
  s.architecture = "rankscope";
  s.width = n.width;
  s.stored_blocks = n.layers;
  s.position = n.positions > 0 ? PositionKind::learned : PositionKind::none;
  const NormSpec norm{NormKind::layer, NormPlace::post, kNormEpsilon};
  s.embedding = {.vocabulary = vocabulary, .width = n.width, .positions = n.positions, .norm = norm};
  BlockSpec block;
  block.attention.heads = block.attention.kv_heads = n.heads;
  block.attention.d_qk = block.attention.d_v = n.width / n.heads;
  block.attention.scale = 1 / std::sqrt(static_cast<double>(block.attention.d_qk));
  block.mlp.kind = n.mlp ? MlpKind::plain : MlpKind::none;
  block.mlp.width = n.mlp ? n.width : 0;
  block.norm = norm;
  block.attention_skip = n.skip;
  for (; block.weights < n.layers; ++block.weights) s.blocks.push_back(block);
  s.output = {.kind = HeadKind::linear, .vocabulary = n.outputs, .width = n.width, .bias = true};
  return s;
}

std::vector<Parameter> token_parameters(const TokenNetwork& n) {
  using Role = Parameter::Role;
  std::vector<Parameter> all;
  const bool words = n.vocabulary > 0;
  if (words) {
    all.push_back({"embed.W_E", {n.vocabulary, n.width}});
    if (n.positions > 0) all.push_back({"embed.W_pos", {n.positions, n.width}});
  } else {
    all.push_back({"embed.W_in", {n.width, 2}});
    all.push_back({"embed.b_in", {n.width}, Role::bias});
  }
  if (words || n.deep_input) {
    all.push_back({"embed.W_map", {n.width, n.width}});
    all.push_back({"embed.b_map", {n.width}, Role::bias});
  }
  all.push_back({"embed.ln.w", {n.width}, Role::gain});
  all.push_back({"embed.ln.b", {n.width}, Role::bias});
  const ModelSpec spec = model_spec(n, std::max<int64_t>(1, n.vocabulary));
  for (const Parameter& p : parameters(spec))
    if (p.name.rfind("embed.", 0) != 0) all.push_back(p);
  return all;
}

int64_t parameter_count(const TokenNetwork& n) {
  int64_t total = 0;
  for (const Parameter& p : token_parameters(n)) total += element_count(p);
  return total;
}

std::vector<float> initial_parameters(const TokenNetwork& n, uint64_t seed) {
  std::vector<float> out;
  const double bound = 1 / std::sqrt(static_cast<double>(n.width));
  for (const Parameter& p : token_parameters(n)) {
    const Philox random{seed, stream_of(p.name), 0};
    const bool uniform = ends_with(p.name, "attn.W_V") || ends_with(p.name, "attn.W_O");
    for (uint64_t i = 0; i < static_cast<uint64_t>(element_count(p)); ++i)
      out.push_back(static_cast<float>(p.role == Parameter::Role::gain   ? 1.0
                                       : p.role == Parameter::Role::bias ? 0.0
                                       : uniform                         ? bound * (2 * random.uniform(i) - 1)
                                                                         : 0.02 * random.normal(i)));
  }
  return out;
}

TokenParameters::TokenParameters(const TokenNetwork& n, const Tensor& flat, bool gradients) {
  int64_t offset = 0;
  const std::vector<Parameter> all = token_parameters(n);
  for (size_t i = 0; i < all.size(); ++i) {
    std::string name = all[i].name;
    std::vector<int64_t> shape = all[i].shape;
    if (const std::string merged = merged_name(name); !merged.empty()) {  // the two behind it belong to it
      name = merged;
      shape[0] *= 3;
      i += 2;
    }
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    Tensor view = flat.narrow(0, offset, count).view(shape).detach();
    offset += count;
    index_[name] = leaves_.size();
    leaves_.push_back(view.requires_grad_(gradients));
  }
}

const Tensor& TokenParameters::get(const std::string& name) const { return leaves_[index_.at(name)]; }

Tensor token_input(const TokenNetwork& n, const TokenParameters& p, const TokenBatch& batch) {
  if (batch.ids.defined())
    return at::linear(at::embedding(p.get("embed.W_E"), batch.ids), p.get("embed.W_map"),
                      p.get("embed.b_map"));
  const Tensor x = at::linear(batch.points, p.get("embed.W_in"), p.get("embed.b_in"));
  return n.deep_input ? at::linear(at::gelu(x), p.get("embed.W_map"), p.get("embed.b_map")) : x;
}

Tensor token_forward(const TokenNetwork& n, const TokenParameters& p, const TokenBatch& batch,
                     const Dropout& dropout) {
  return Pass(n, p, batch, dropout).answers();
}

double layer_flops(const TokenNetwork& n, int64_t heads, int64_t tokens) {
  const auto d = static_cast<double>(n.width), T = static_cast<double>(tokens);
  const double used = static_cast<double>(heads) / static_cast<double>(n.heads);
  return 2 * T * (used * (4 * d * d + 2 * T * d) + (n.mlp ? 2 * d * d : 0));
}

double forward_flops(const TokenNetwork& n, int64_t tokens) {
  const auto d = static_cast<double>(n.width), T = static_cast<double>(tokens);
  const double input = n.vocabulary > 0 || n.deep_input ? d * d + 2 * d : 2 * d;
  return 2 * T * (input + d * static_cast<double>(n.outputs)) +
         static_cast<double>(n.layers) * layer_flops(n, n.heads, tokens);
}

}  // namespace rankscope
