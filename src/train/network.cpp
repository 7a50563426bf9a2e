#include "train/network.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "base/stream_name.h"

namespace rankscope {
namespace {

using Role = Parameter::Role;

class Builder {
 public:
  explicit Builder(const NetworkSpec& spec) : n_(spec) {}

  std::vector<Slot> build() {
    if (!n_.encoder) {
      layer();
      return std::move(slots_);
    }
    const int64_t D = n_.width();
    if (n_.embed > 0) linear("embed.W_map", "embed.b_map", D, n_.token_width);
    if (n_.positions == Positions::additive) add("embed.W_pos", {n_.tokens, D}, Slot::Init::uniform, 1.0);
    if (n_.positions == Positions::concatenated)
      add("embed.W_pos", {n_.tokens, n_.position_width}, Slot::Init::uniform, 1.0);
    for (int64_t l = 0; l < n_.layers; ++l) block(fmt::format("blocks.{}.", l), D);
    if (n_.place == NormPlace::pre) norm("ln_final", D);
    if (n_.embed > 0) linear("unembed.W_U", "unembed.b_U", n_.answer_width, D);
    return std::move(slots_);
  }

 private:
  // The separate-query layer: Glorot bounds of Q, K [rank, d] and of the merged value map [d, heads * d].
  void layer() {
    const int64_t D = n_.width(), columns = n_.heads * n_.rank;
    const double qk = std::sqrt(6.0 / static_cast<double>(n_.rank + D));
    const bool places = n_.positions == Positions::concatenated;
    if (places) add("embed.W_pos", {n_.tokens, n_.position_width}, Slot::Init::uniform, 1.0);
    add("blocks.0.attn.W_Q", {columns, D}, Slot::Init::uniform, qk);
    add("blocks.0.attn.W_K", {columns, D}, Slot::Init::uniform, qk);
    // With places this is the score's own bias, <b_Q, W_K place>; without, softmax would not see it.
    if (n_.bias && places) add("blocks.0.attn.b_Q", {columns});
    add("blocks.0.attn.W_O", {n_.answer_width, n_.heads * D}, Slot::Init::uniform,
        std::sqrt(6.0 / static_cast<double>(n_.heads * D + n_.answer_width)));
  }

  // Every module starts like torch's multi-head attention: Glorot over its stacked projection, biases zero.
  void block(const std::string& b, int64_t D) {
    const int64_t qk = n_.total_heads() * n_.rank, v = n_.total_heads() * n_.v_rank;
    const double rows = static_cast<double>(n_.heads * (2 * n_.rank + n_.v_rank));
    const double in = std::sqrt(6.0 / (static_cast<double>(D) + rows));
    const double out = 1.0 / std::sqrt(static_cast<double>(n_.heads * n_.v_rank));
    norm(b + "ln1", D);
    add(b + "attn.W_Q", {qk, D}, Slot::Init::uniform, in);
    add(b + "attn.W_K", {qk, D}, Slot::Init::uniform, in);
    add(b + "attn.W_V", {v, D}, Slot::Init::uniform, in);
    add(b + "attn.W_O", {D, v}, Slot::Init::uniform, out);
    if (n_.bias) {
      add(b + "attn.b_Q", {qk});
      add(b + "attn.b_K", {qk});
      add(b + "attn.b_V", {v});
      add(b + "attn.b_O", {D});
    }
    if (n_.mlp == 0) return;
    norm(b + "ln2", D);
    linear(b + "mlp.W_in", b + "mlp.b_in", n_.mlp, D);
    linear(b + "mlp.W_out", b + "mlp.b_out", D, n_.mlp);
  }

  void linear(const std::string& W, const std::string& b, int64_t out, int64_t in) {
    const double spread = 1.0 / std::sqrt(static_cast<double>(in));
    add(W, {out, in}, Slot::Init::uniform, spread);
    if (n_.bias) add(b, {out}, Slot::Init::uniform, spread);
  }

  void norm(const std::string& name, int64_t D) {
    if (n_.norm == NormKind::none) return;
    add(name + ".w", {n_.norm == NormKind::unit ? 1 : D}, Slot::Init::one);
    if (n_.norm == NormKind::layer) add(name + ".b", {D});
  }

  void add(const std::string& name, std::vector<int64_t> shape, Slot::Init init = Slot::Init::zero,
           double spread = 0) {
    const Role role = init == Slot::Init::one ? Role::gain : shape.size() == 2 ? Role::matrix : Role::bias;
    slots_.push_back({.parameter = {name, std::move(shape), role}, .init = init, .spread = spread});
  }

  const NetworkSpec& n_;
  std::vector<Slot> slots_;
};

// "blocks.3.mlp.W_in" -> "blocks.0.mlp.W_in" when all layers start alike.
std::string drawn_as(const std::string& name, bool same_init) {
  if (!same_init || name.rfind("blocks.", 0) != 0) return name;
  return "blocks.0" + name.substr(name.find('.', 7));
}

}  // namespace

int64_t NetworkSpec::width() const {
  if (embed > 0) return embed;
  return token_width + (positions == Positions::concatenated ? position_width : 0);
}

void check(const NetworkSpec& n) {
  const int64_t D = n.width();
  const auto refuse = [](std::string what, std::string advice) {
    throw usage_error(std::move(what)).hint(std::move(advice));
  };
  if (n.rank < 1 || n.rank > D)
    refuse(fmt::format("a head's rank of {} is not between 1 and the width {}", n.rank, D), "a smaller rank");
  if (n.v_rank < 1 || n.v_rank > D)
    refuse(fmt::format("a head's value rank of {} is not between 1 and the width {}", n.v_rank, D),
           "a smaller v_rank");
  if (n.embed == 0 && n.answer_width > D)
    refuse(fmt::format("an answer of width {} cannot be read off tokens of width {}", n.answer_width, D),
           "embed=64");
  if (!n.encoder && (n.layers != 1 || n.modules != 1 || n.mlp != 0 || n.embed != 0))
    refuse("the one-layer model has one layer, width 1, no MLP and no embedding",
           "layers=1 width=1 mlp=0 embed=0, or model=encoder");
  if (!n.encoder && n.positions == Positions::additive)
    refuse("the one-layer model knows positions none and concatenated", "positions=concatenated");
  if (n.tokens > 256)
    refuse(fmt::format("{} tokens are more than the 256 of short-context attention", n.tokens), "n=256");
}

Layout::Layout(const NetworkSpec& spec, int64_t alignment) : slots_(Builder(spec).build()) {
  const auto align = [&] { size_ = (size_ + alignment - 1) / alignment * alignment; };
  for (Slot& slot : slots_) {
    if (!slot.parameter.name.ends_with("_K") && !slot.parameter.name.ends_with("_V")) align();
    slot.offset = size_;
    size_ += element_count(slot.parameter);
  }
  align();
}

std::vector<float> initial_parameters(const NetworkSpec& spec, uint64_t seed) {
  const Layout layout(spec);
  std::vector<float> out(static_cast<size_t>(layout.size()));
  for (const Slot& slot : layout.slots()) {
    const Philox random{seed, stream_of(drawn_as(slot.parameter.name, spec.same_init)), 0};
    float* at = out.data() + slot.offset;
    for (int64_t i = 0; i < element_count(slot.parameter); ++i) {
      const auto index = static_cast<uint64_t>(i);
      switch (slot.init) {
        case Slot::Init::zero:
          at[i] = 0.0f;
          break;
        case Slot::Init::one:
          at[i] = 1.0f;
          break;
        case Slot::Init::uniform:
          at[i] = static_cast<float>(slot.spread * (2.0 * random.uniform(index) - 1.0));
          break;
      }
    }
  }
  return out;
}

double forward_flops(const NetworkSpec& n, const TaskSpec& task) {
  const double N = static_cast<double>(n.tokens), D = static_cast<double>(n.width());
  const double H = static_cast<double>(n.total_heads()), r = static_cast<double>(n.rank);
  const double rv = static_cast<double>(n.v_rank), answer = static_cast<double>(n.answer_width);
  if (!n.encoder) {
    const double Q = static_cast<double>(task.queries);
    return 2 * D * H * r * (Q + N) + 2 * Q * N * H * (r + D) + 2 * Q * H * D * answer;
  }
  const double token =
      2 * D * H * (2 * r + 2 * rv) + 2 * N * H * (r + rv) + 4 * D * static_cast<double>(n.mlp);
  double total = static_cast<double>(n.layers) * token * N;
  if (n.embed > 0) total += N * 2 * D * (static_cast<double>(n.token_width) + answer);
  return total;
}

}  // namespace rankscope
