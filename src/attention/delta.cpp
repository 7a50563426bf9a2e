// The delta rule (Schlag et al. 2021; DeltaNet, Yang et al. 2024): a state that looks up what it holds for a
// key and writes the difference, S_t = a_t S_{t-1} (1 - b_t k_t k_t^T) + b_t v_t k_t^T, read by o_t = S_t
// q_t. Keys and queries have length one; b is how much is written, and a, where there is one (gated
// DeltaNet), how much is kept.
//
// As a matrix: with G_ij the product of a over j < t <= i and M the part of b_i (k_i . k_j) G_ij below the
// diagonal,
//   P = (q_i . k_j G_ij on and below the diagonal) (1 + M)^-1 diag(b).
// parts/delta_attention.cpp and parts/gated_delta_attention.cpp make a and b.
#include <ATen/ATen.h>

#include "attention/support/scores.h"
#include "base/error.h"
#include "ops/delta_attention.h"

namespace rankscope {
namespace {

at::Tensor of_length_one(const at::Tensor& x, const AttentionSpec& spec) {
  const at::Tensor squared = (x * x).sum(-1, true);
  const double epsilon = number_option(spec, "epsilon");
  return x / at::sqrt(epsilon > 0 ? squared + epsilon : squared.clamp_min(1e-24));
}

void require_state(const AttentionInput& in) {
  if (in.spec.window > 0) throw Error("the delta rule keeps a state, which takes no window");
  if (in.q.size(1) != in.k.size(1)) throw Error("the delta rule cannot look at another stream");
  if (in.gates == nullptr || !in.gates->defined())
    throw Error(
        "the delta rule reads how much a key writes: it goes with the parts delta_attention and "
        "gated_delta_attention");
}

at::Tensor delta_output(const AttentionInput& in, const at::Tensor& v) {
  require_state(in);
  const Scores scores(in);
  const at::Tensor gates = heads_first(*in.gates, in.spec.heads);  // [S * H, T, 1 or 2]
  return delta_attention(of_length_one(scores.q(), in.spec) * in.spec.scale,
                         of_length_one(scores.k(), in.spec), v, gates.select(2, 0),
                         gates.size(2) > 1 ? gates.select(2, 1) : at::Tensor());
}

class Delta : public PreparedAttention {
 public:
  explicit Delta(const AttentionInput& in) {
    require_state(in);
    const Scores scores(in);
    const int64_t H = in.spec.heads, T = in.k.size(1), S = scores.samples();
    const at::Tensor q = of_length_one(scores.q(), in.spec) * in.spec.scale,
                     k = of_length_one(scores.k(), in.spec);  // [S * H, T, d]
    const at::Tensor gates = heads_first(*in.gates, H);       // [S * H, T, 1 or 2]
    const at::Tensor write = gates.select(2, 0);
    at::Tensor read = at::bmm(q, k.transpose(1, 2)), same = at::bmm(k, k.transpose(1, 2));
    if (gates.size(2) > 1) {
      // As ops/chunks.cpp does: by logarithms, in double precision, since those of long texts are large and
      // their differences small; nothing kept is 1e-300.
      const at::Tensor kept = at::log(gates.select(2, 1).to(at::kDouble).clamp_min(1e-300)).cumsum(1);
      // Above the diagonal the exponent would be positive and large; it is cut off below.
      const at::Tensor G =
          at::exp((kept.unsqueeze(2) - kept.unsqueeze(1)).clamp_max(0)).to(gates.scalar_type());
      read = read * G;
      same = same * G;
    }
    const at::Tensor system = at::eye(T, q.options()) + (write.unsqueeze(2) * same).tril(-1);
    // P system = tril(read), then columns times b.
    const at::Tensor P = at::linalg_solve_triangular(system, read.tril(), /*upper=*/false, /*left=*/false,
                                                     /*unitriangular=*/true);
    pattern_ = (P * write.unsqueeze(1)).view({S, H, T, T});
  }

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    return pattern_.narrow(0, first, count).narrow(2, first_row, rows);
  }

 private:
  at::Tensor pattern_;  // [S, H, T, T]
};

}  // namespace

extern const AttentionVariant attention_delta{
    .name = "delta",
    .summary = "a state that writes what differs from what it holds for a key, and may forget",
    .row_stochastic = false,
    .only_tokens = false,
    .own_tokens_only = true,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Delta>(in);
    },
    .shares = false,
    .only_causal = true,
    .options = {{.name = "epsilon",
                 .otherwise = "0",
                 .low = 0,
                 .high = 1,
                 .meaning = "added to the squared length that keys and queries are divided by"}},
    .output = delta_output};

}  // namespace rankscope
