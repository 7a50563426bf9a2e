// softmax(scale Q K^T): the attention of nearly every model, with rotary positions where the spec has them.
#include "attention/variant.h"

#include <map>

namespace rankscope {
namespace {

// Kept, so that no step uploads them again.
at::Tensor frequencies_on(const at::Device& device, const std::vector<double>& values) {
  thread_local std::map<std::pair<std::string, std::vector<double>>, at::Tensor> known;
  at::Tensor& there = known[{device.str(), values}];
  if (!there.defined()) there = at::tensor(values, at::kDouble).to(device);
  return there;
}

// Rotates pairs (x_i, x_{i + n/2}) of the first n channels by position times frequency (the half-split layout
// of Llama's checkpoints). The angles are computed in double: position 8,000 times 1 is not exact enough in
// float.
at::Tensor rotate(const at::Tensor& x, const AttentionSpec& spec, const at::Tensor& positions) {
  const auto pairs = static_cast<int64_t>(spec.rotary_frequencies.size());
  const at::Tensor frequencies = frequencies_on(x.device(), spec.rotary_frequencies);
  const at::Tensor angles = positions.to(at::kDouble).unsqueeze(-1) * frequencies;  // [S, T, pairs]
  const at::Tensor cos = (angles.cos() * spec.rotary_scale).to(x.scalar_type()).unsqueeze(2);
  const at::Tensor sin = (angles.sin() * spec.rotary_scale).to(x.scalar_type()).unsqueeze(2);
  const at::Tensor a = x.narrow(-1, 0, pairs), b = x.narrow(-1, pairs, pairs);
  std::vector<at::Tensor> parts{a * cos - b * sin, b * cos + a * sin};
  const int64_t rest = x.size(-1) - 2 * pairs;
  if (rest > 0) parts.push_back(x.narrow(-1, 2 * pairs, rest));
  return at::cat(parts, -1);
}

class Softmax : public PreparedAttention {
 public:
  explicit Softmax(const AttentionInput& in) : spec_(in.spec), keys_(in.k.size(1)) {
    const bool rotary = in.spec.positions && !in.spec.rotary_frequencies.empty();
    q_ = heads_first(rotary ? rotate(in.q, in.spec, in.positions) : in.q, in.spec.heads);
    k_ = heads_first(rotary ? rotate(in.k, in.spec, in.key_positions) : in.k, in.spec.heads);
  }

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows,
                     at::Tensor* kept) override {
    const int64_t H = spec_.heads;
    const at::Tensor q = q_.narrow(0, first * H, count * H).narrow(1, first_row, rows) * spec_.scale;
    const at::Tensor k = k_.narrow(0, first * H, count * H);
    return masked_softmax(at::bmm(q, k.transpose(1, 2)).view({count, H, rows, keys_}), spec_, first_row,
                          kept);
  }

 private:
  const AttentionSpec& spec_;
  int64_t keys_;
  at::Tensor q_, k_;  // [S * H, T, d_qk]
};

std::unique_ptr<PreparedAttention> prepare(const AttentionInput& in) { return std::make_unique<Softmax>(in); }

}  // namespace

extern const AttentionVariant attention_softmax{
    .name = "softmax",
    .summary = "softmax(scale Q K^T), causal or not, with rotary positions where the model has them",
    .row_stochastic = true,
    .only_tokens = true,
    .own_tokens_only = false,
    .has_scores = true,
    .prepare = prepare};

}  // namespace rankscope
