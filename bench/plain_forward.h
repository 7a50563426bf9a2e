// The competitor: BERT, GPT-2 or Llama as anybody would write it with LibTorch, all samples in one batch,
// every weight in memory in float32, attention by two products and a softmax.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/load.h"
#include "tensors/torch_compat.h"

namespace rankscope {

/// What looks at a forward pass on its way.
class PlainObserver {
 public:
  virtual ~PlainObserver() = default;
  virtual void stream(const at::Tensor& x) = 0;   // [B, T, d]: before, inside and behind every block
  virtual void pattern(const at::Tensor& p) = 0;  // [B, H, T, T]
};

class PlainForward {
 public:
  PlainForward(const Checkpoint& checkpoint, const std::string& device)
      : spec_(checkpoint.spec()), kind_(spec_.architecture) {
    if (kind_ != "bert" && kind_ != "gpt2" && kind_ != "llama")
      throw Error("no plain forward pass of " + kind_);
    const auto source = checkpoint_source(checkpoint, "float32", device);
    table_ = source->row_range("embed.W_E", 0, spec_.embedding.vocabulary);
    embed_ = copy(source->load("embed"), "embed");
    for (int64_t l = 0; l < spec_.depth(); ++l) {
      const std::string part = fmt::format("blocks.{}", l);
      blocks_.push_back(copy(source->load(part), part));
    }
    if (spec_.final_norm.there()) final_ = copy(source->load("ln_final"), "ln_final");
  }

  int64_t depth() const { return spec_.depth(); }

  /// [B, T] on the device, to [B, T, d].
  at::Tensor forward(const at::Tensor& ids, PlainObserver* observer = nullptr) const {
    const auto seen = [&](const at::Tensor& x) -> const at::Tensor& {
      if (observer != nullptr) observer->stream(x);
      return x;
    };
    const int64_t T = ids.size(1);
    at::Tensor x = at::embedding(table_, ids);
    if (spec_.embedding.positions > 0) x = x + embed_.get("W_pos").narrow(0, 0, T);
    if (kind_ == "bert") x = norm(x + embed_.get("W_type")[0], embed_, "ln.");
    const at::Tensor hidden =
        spec_.causal() ? at::ones({T, T}, ids.options().dtype(at::kBool)).triu_(1) : at::Tensor();
    for (const Weights& w : blocks_) {
      if (kind_ == "bert") {
        x = seen(norm(seen(x) + attention(x, w, hidden, observer), w, "ln1."));
        x = seen(norm(x + mlp(x, w), w, "ln2."));
      } else {
        x = seen(seen(x) + attention(norm(x, w, "ln1."), w, hidden, observer));
        x = seen(x + mlp(norm(x, w, "ln2."), w));
      }
    }
    return spec_.final_norm.there() ? norm(x, final_, "") : x;
  }

 private:
  at::Tensor linear(const at::Tensor& x, const Weights& w, const char* W, const char* b) const {
    return at::linear(x, w.get(W), w.get_or_none(b));
  }
  at::Tensor norm(const at::Tensor& x, const Weights& w, const std::string& name) const {
    const double epsilon = kind_ == "bert" ? 1e-12 : 1e-5;
    if (kind_ != "llama")
      return at::layer_norm(x, {spec_.width}, w.get(name + "w"), w.get(name + "b"), epsilon);
    return x * at::rsqrt(x.square().mean(-1, true) + epsilon) * w.get(name + "w");
  }
  at::Tensor turned(const at::Tensor& x) const {  // [B, H, T, d]: rotary positions
    const int64_t d = x.size(-1), T = x.size(2);
    const auto options = x.options();
    const at::Tensor rate = at::exp(at::arange(0, d, 2, options.dtype(at::kDouble)) *
                                    (-std::log(10000.0) / static_cast<double>(d)));
    const at::Tensor angle = at::arange(T, options.dtype(at::kDouble)).unsqueeze(1) * rate;
    const at::Tensor cos = at::cat({angle, angle}, -1).cos().to(options.dtype());
    const at::Tensor sin = at::cat({angle, angle}, -1).sin().to(options.dtype());
    const at::Tensor half = at::cat({-x.narrow(-1, d / 2, d / 2), x.narrow(-1, 0, d / 2)}, -1);
    return x * cos + half * sin;
  }
  at::Tensor attention(const at::Tensor& x, const Weights& w, const at::Tensor& hidden,
                       PlainObserver* observer) const {
    const AttentionSpec& a = spec_.blocks[0].attention();
    const int64_t B = x.size(0), T = x.size(1);
    const auto heads = [&](const char* W, const char* b) {
      return linear(x, w, W, b).view({B, T, a.heads, a.d_qk}).transpose(1, 2);
    };
    at::Tensor q = heads("attn.W_Q", "attn.b_Q"), k = heads("attn.W_K", "attn.b_K");
    if (kind_ == "llama") q = turned(q), k = turned(k);
    at::Tensor scores = at::matmul(q, k.transpose(-1, -2)).mul_(a.scale);
    if (hidden.defined()) scores.masked_fill_(hidden, -std::numeric_limits<float>::infinity());
    const at::Tensor pattern = at::softmax(scores, -1);
    if (observer != nullptr) observer->pattern(pattern);
    const at::Tensor z = at::matmul(pattern, heads("attn.W_V", "attn.b_V"));
    return linear(z.transpose(1, 2).reshape({B, T, -1}), w, "attn.W_O", "attn.b_O");
  }
  at::Tensor mlp(const at::Tensor& x, const Weights& w) const {
    at::Tensor h = linear(x, w, "mlp.W_in", "mlp.b_in");
    if (kind_ == "llama")
      h = at::silu(linear(x, w, "mlp.W_gate", "mlp.b_gate")) * h;
    else
      h = at::gelu(h, kind_ == "bert" ? "none" : "tanh");
    return linear(h, w, "mlp.W_out", "mlp.b_out");
  }
  // Out of the mapped file, and contiguous.
  Weights copy(const Weights& mapped, const std::string& part) const {
    Weights out;
    for (const Parameter& p : parameters_of(spec_, part)) {
      const std::string name = p.name.substr(part.size() + 1);
      if (mapped.has(name)) out.set(name, mapped.get(name).clone(at::MemoryFormat::Contiguous));
    }
    return out;
  }

  ModelSpec spec_;
  std::string kind_;
  at::Tensor table_;
  Weights embed_, final_;
  std::vector<Weights> blocks_;
};

}  // namespace rankscope
