#include "bench/plain_network.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"
#include "tensors/torch_compat.h"
#include "train/layout.h"
#include "train/networks.h"

namespace rankscope {
namespace {

using at::Tensor;

// The columns of Q, K and V, each [sequences, heads, tokens, width of a head].
struct Heads {
  Tensor q, k, v;
};

Heads split_heads(const Tensor& qkv, int64_t tokens, int64_t heads) {
  const Tensor x = qkv.reshape({-1, tokens, 3, heads, qkv.size(-1) / (3 * heads)}).permute({2, 0, 3, 1, 4});
  return {x[0], x[1], x[2]};
}

Tensor join_heads(const Tensor& z) { return z.transpose(1, 2).flatten(2).flatten(0, 1); }

Tensor unit_norm(const Tensor& x, const Tensor& gain) {
  return x * (gain.unsqueeze(-1) / at::linalg_vector_norm(x, 2, {-1}, true));
}

class Places {
 public:
  explicit Places(const ModelSpec& spec) : layout_(spec) {}
  const Slot& slot(const std::string& name) const {
    for (const Slot& s : layout_.slots())
      if (s.parameter.name == name) return s;
    throw Error(fmt::format("the network has no {}", name));
  }
  /// A whole parameter.
  Place whole(const std::string& name) const {
    const Slot& s = slot(name);
    Place p{s.offset, s.parameter.shape, std::vector<int64_t>(s.parameter.shape.size(), 1)};
    if (p.sizes.size() == 2) p.strides[0] = p.sizes[1];
    return p;
  }
  /// Rows [first, first + rows) of Q, K and V, which lie side by side: [3, rows, ...].
  Place thirds(const std::string& q, int64_t first, int64_t rows) const {
    Place p = whole(q);
    const int64_t all = p.sizes[0], row = p.strides[0];
    p.offset += first * row;
    p.sizes[0] = rows;
    p.sizes.insert(p.sizes.begin(), 3);
    p.strides.insert(p.strides.begin(), all * row);
    return p;
  }
  /// Columns [first, first + columns) of a matrix.
  Place columns(const std::string& name, int64_t first, int64_t columns) const {
    Place p = whole(name);
    p.offset += first;
    p.sizes[1] = columns;
    return p;
  }

 private:
  Layout layout_;
};

class Network : public PlainNetwork {
 public:
  Network(const ModelSpec& spec, int64_t tokens, const Tensor& flat, bool by_module)
      : width_(spec.width),
        tokens_(tokens),
        a_(spec.blocks.front().attention()),
        where_(spec),
        flat_(flat),
        by_module_(by_module) {
    for (int64_t l = 0; l < spec.depth(); ++l) {
      const std::string b = fmt::format("blocks.{}.", l);
      const int64_t columns = a_.heads * a_.d_qk, module = by_module ? columns / a_.modules : columns;
      Block block;
      for (int64_t first = 0; first < columns; first += module)
        block.modules.push_back({take(where_.thirds(b + "attn.W_Q", first, module)),
                                 take(where_.thirds(b + "attn.b_Q", first, module)),
                                 take(where_.columns(b + "attn.W_O", first, module))});
      const auto whole = [&](const char* name) { return take(where_.whole(b + name)); };
      block.b_O = whole("attn.b_O");
      block.ln1 = whole("ln1.w");
      block.ln2 = whole("ln2.w");
      block.W_in = whole("mlp.W_in");
      block.b_in = whole("mlp.b_in");
      block.W_out = whole("mlp.W_out");
      block.b_out = whole("mlp.b_out");
      blocks_.push_back(std::move(block));
    }
  }

  Tensor loss(const TaskBatch& batch) const override {
    const int64_t trials = flat_.size(0);
    const Tensor tokens = batch.tokens.to(flat_.scalar_type()), target = batch.target.to(flat_.scalar_type());
    Tensor x = tokens.reshape({trials, -1, width_});
    for (const Block& block : blocks_) {
      x = unit_norm(x + attention(block, x), leaf(block.ln1));
      const Tensor hidden = linear(x, leaf(block.W_in), leaf(block.b_in)).relu();
      x = unit_norm(x + linear(hidden, leaf(block.W_out), leaf(block.b_out)), leaf(block.ln2));
    }
    return (x - target.reshape(x.sizes())).square().sum(-1).mean(-1);
  }

  const std::vector<Tensor>& leaves() const override { return leaves_; }

  Tensor flat(const std::vector<Tensor>& gradients) const override {
    const Tensor out = at::zeros_like(flat_);
    for (size_t i = 0; i < gradients.size(); ++i) view(out, places_[i]).copy_(gradients[i]);
    return out;
  }

 private:
  struct Module {
    size_t W, b, W_O;
  };
  struct Block {
    std::vector<Module> modules = {};
    size_t b_O = 0, ln1 = 0, ln2 = 0, W_in = 0, b_in = 0, W_out = 0, b_out = 0;
  };

  static Tensor view(const Tensor& flat, const Place& place) {
    std::vector<int64_t> sizes = place.sizes, strides = place.strides;
    sizes.insert(sizes.begin(), flat.size(0));
    strides.insert(strides.begin(), flat.size(1));
    return flat.as_strided(sizes, strides, flat.storage_offset() + place.offset);
  }

  size_t take(Place place) {
    leaves_.push_back(view(flat_, place).clone(at::MemoryFormat::Contiguous).requires_grad_(true));
    places_.push_back(std::move(place));
    return leaves_.size() - 1;
  }
  const Tensor& leaf(size_t i) const { return leaves_[i]; }

  // x [trials, rows, in], W [trials, out, in], b [trials, out].
  static Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b, double scale = 1.0) {
    if (x.size(0) == 1) return at::addmm(b[0], x[0], W[0].t(), 1.0, scale).unsqueeze(0);
    return at::baddbmm(b.unsqueeze(1), x, W.transpose(1, 2), 1.0, scale);
  }

  Tensor attention(const Block& block, const Tensor& x) const {
    const double share = 1.0 / static_cast<double>(a_.modules);
    Tensor sum;
    for (const Module& m : block.modules) {
      const Tensor qkv = linear(x, leaf(m.W).flatten(1, 2), leaf(m.b).flatten(1, 2)).flatten(0, 1);
      const Tensor z = by_module_ ? plain_attention(qkv, tokens_, a_.heads / a_.modules, qkv.size(-1) / 3)
                                  : library_attention(qkv, tokens_, a_.heads);
      const Tensor heads = z.reshape({x.size(0), x.size(1), z.size(-1)});
      if (!by_module_) return linear(heads, leaf(m.W_O), leaf(block.b_O), share);
      const Tensor out = at::matmul(heads, leaf(m.W_O).transpose(1, 2));
      sum = sum.defined() ? sum + out : out;
    }
    return sum * share + leaf(block.b_O).unsqueeze(1);
  }

  int64_t width_, tokens_;
  AttentionSpec a_;
  Places where_;
  Tensor flat_;
  bool by_module_;
  std::vector<Tensor> leaves_;
  std::vector<Place> places_;
  std::vector<Block> blocks_;
};

}  // namespace

Tensor plain_attention(const Tensor& qkv, int64_t tokens, int64_t heads, int64_t module_columns) {
  const int64_t columns = qkv.size(-1) / 3, modules = columns / module_columns;
  std::vector<Tensor> out;
  for (int64_t m = 0; m < modules; ++m) {
    const Tensor part =
        modules == 1
            ? qkv
            : qkv.unflatten(-1, {3, columns}).narrow(-1, m * module_columns, module_columns).flatten(-2);
    const Heads h = split_heads(part, tokens, heads / modules);
    const double scale = 1 / std::sqrt(static_cast<double>(h.q.size(-1)));
    out.push_back(join_heads(at::matmul(at::softmax(at::matmul(h.q * scale, h.k.transpose(2, 3)), -1), h.v)));
  }
  return modules == 1 ? out.front() : at::cat(out, -1);
}

Tensor library_attention(const Tensor& qkv, int64_t tokens, int64_t heads) {
  const Heads h = split_heads(qkv, tokens, heads);
  return join_heads(dot_product_attention(h.q, h.k, h.v));
}

std::unique_ptr<PlainNetwork> plain_network(const ModelSpec& spec, int64_t tokens, const Tensor& flat,
                                            bool by_module) {
  const AttentionSpec& a = spec.blocks.front().attention();
  AttentionSpec known;
  known.heads = known.kv_heads = a.heads;
  known.d_qk = known.d_v = a.d_qk;
  known.modules = a.modules;
  known.scale = 1 / std::sqrt(static_cast<double>(a.d_qk));
  const BranchSpec* mlp = spec.blocks.front().mlp_branch();
  ModelSpec expected =
      points_encoder(spec.width,
                     classic_block(NormPlace::post, fused_norm(NormKind::unit), known, "mlp",
                                   {.width = mlp ? mlp->mlp()->width : 0, .activation = Activation::relu}),
                     spec.depth(), spec.width);
  expected.init = spec.init;
  if (spec != expected)
    throw Error("the plain network is the post-norm encoder of the rank-against-heads study, and no other");
  return std::make_unique<Network>(spec, tokens, flat, by_module);
}

}  // namespace rankscope
