// XLNet's attention: content scores plus scores against sinusoids of the distance i - j,
//   A_ij = softmax_j scale [ (q_i + r_w) . k_j + (q_i + r_r) . W_R s(i - j) + (q_i + r_s) . e[type_i !=
//   type_j] ].
// The last term is there only when the input came with token types.
#include "attention/variant.h"

namespace rankscope {
namespace {

// Row p holds s(T - p) for p = 0 .. 2T - 1: first the sines, then the cosines.
at::Tensor distance_sinusoids(int64_t T, int64_t width, const at::TensorOptions& options) {
  const auto wide = options.dtype(at::kDouble);
  const at::Tensor frequencies =
      at::pow(10000.0, at::arange(0, width, 2, wide) / -static_cast<double>(width));
  const at::Tensor angles = at::arange(T, -T, -1, wide).unsqueeze(1) * frequencies;
  return at::cat({angles.sin(), angles.cos()}, 1).to(options.dtype());
}

class Relative : public PreparedAttention {
 public:
  explicit Relative(const AttentionInput& in) : spec_(in.spec), T_(in.q.size(1)) {
    const int64_t H = in.spec.heads, d = in.spec.d_qk;
    const auto own = [&](const char* name) -> const at::Tensor& {
      return in.weights.get(in.name + "." + name);
    };
    const auto biased = [&](const char* name) { return heads_first(in.q + own(name).view({1, 1, H, d}), H); };
    content_ = biased("r_w_bias");
    k_ = heads_first(in.k, H);
    if (in.types.defined()) {
      // The two scores a query can give: to its own segment, and to any other.
      const at::Tensor e = own("seg_embed").view({2, H, d}).permute({1, 2, 0});  // [H, d, 2]
      const int64_t S = in.q.size(0);
      segment_ = at::matmul(biased("r_s_bias").view({S, H, T_, d}), e);  // [S, H, T, 2]
      types_ = in.types;
    }
    if (!in.spec.positions) return;
    distance_ = biased("r_r_bias");
    const at::Tensor& W_R = own("W_R");
    r_ = at::linear(distance_sinusoids(T_, W_R.size(1), in.q.options()), W_R)
             .view({2 * T_, H, d})
             .permute({1, 0, 2});
  }

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows,
                     at::Tensor* kept) override {
    const int64_t H = spec_.heads;
    const auto tile = [&](const at::Tensor& q) {
      return q.narrow(0, first * H, count * H).narrow(1, first_row, rows) * spec_.scale;
    };
    at::Tensor scores = at::bmm(tile(content_), k_.narrow(0, first * H, count * H).transpose(1, 2));
    if (distance_.defined()) {
      const at::Tensor r =
          r_.unsqueeze(0).expand({count, H, 2 * T_, spec_.d_qk}).reshape({count * H, 2 * T_, -1});
      const at::Tensor by_distance = at::bmm(tile(distance_), r.transpose(1, 2));  // [count * H, rows, 2T]
      // Entry (i, j) wants column T - i + j: a skewed view of the same memory.
      scores += by_distance.as_strided({count * H, rows, T_}, {rows * 2 * T_, 2 * T_ - 1, 1}, T_ - first_row);
    }
    scores = scores.view({count, H, rows, T_});
    if (segment_.defined()) {
      const at::Tensor own = segment_.narrow(0, first, count).narrow(2, first_row, rows) * spec_.scale;
      const at::Tensor types = types_.narrow(0, first, count);
      const at::Tensor same = types.narrow(1, first_row, rows)
                                  .unsqueeze(2)
                                  .eq(types.unsqueeze(1))
                                  .unsqueeze(1);  // [S, 1, rows, T]
      scores += at::where(same, own.select(3, 0).unsqueeze(3), own.select(3, 1).unsqueeze(3));
    }
    return masked_softmax(scores, spec_, first_row, kept);
  }

 private:
  const AttentionSpec& spec_;
  int64_t T_;
  at::Tensor content_, distance_, k_, r_, segment_, types_;
};

std::unique_ptr<PreparedAttention> prepare_relative(const AttentionInput& in) {
  return std::make_unique<Relative>(in);
}

}  // namespace

extern const AttentionVariant attention_relative{
    .name = "relative",
    .summary = "XLNet: softmax of content scores plus scores against sinusoids of the distance",
    .row_stochastic = true,
    .only_tokens = false,
    .own_tokens_only = true,
    .has_scores = true,
    .prepare = prepare_relative};

}  // namespace rankscope
