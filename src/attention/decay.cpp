// Linear attention that forgets (retention, Sun et al. 2023): q_i . k_j times g^|i - j|, a state S = g S + k
// v^T. Head h of H keeps g = 1 - 2^-e with e from `slowest` down to `fastest` over the heads, evenly.
#include <ATen/ATen.h>

#include <cmath>

#include "attention/support/scores.h"

namespace rankscope {
namespace {

class Decay : public PreparedAttention {
 public:
  explicit Decay(const AttentionInput& in)
      : scores_(in), positions_(in.positions), key_positions_(in.key_positions) {
    const double slowest = number_option(in.spec, "slowest"), fastest = number_option(in.spec, "fastest");
    std::vector<double> logs;
    for (int64_t h = 0; h < in.spec.heads; ++h) {
      const double at =
          in.spec.heads > 1 ? static_cast<double>(h) / static_cast<double>(in.spec.heads - 1) : 0;
      logs.push_back(std::log1p(-std::exp2(-(slowest + at * (fastest - slowest)))));
    }
    log_keep_ = at::tensor(logs, at::kDouble).to(in.q.device()).view({1, -1, 1, 1});
  }

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    const AttentionSpec& spec = scores_.spec();
    at::Tensor scores = scores_.products(first, count, first_row, rows);
    if (spec.positions) {
      const at::Tensor here = positions_.narrow(0, first, count).narrow(1, first_row, rows).to(at::kDouble);
      const at::Tensor there = key_positions_.narrow(0, first, count).to(at::kDouble);
      const at::Tensor away =
          (here.unsqueeze(2) - there.unsqueeze(1)).abs().unsqueeze(1);  // [S, 1, rows, T']
      scores = scores * at::exp(away * log_keep_).to(scores.scalar_type());
    }
    const at::Tensor hidden = hidden_keys(spec, first_row, rows, scores_.keys(), scores);
    return hidden.defined() ? scores.masked_fill(hidden, 0.0) : scores;
  }

 private:
  Scores scores_;
  at::Tensor positions_, key_positions_;
  at::Tensor log_keep_;  // [1, H, 1, 1]
};

}  // namespace

extern const AttentionVariant attention_decay{
    .name = "decay",
    .summary = "q . k times g^distance: a state that forgets, each head at a rate of its own",
    .row_stochastic = false,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Decay>(in);
    },
    .shares = false,
    .options = {
        {.name = "slowest",
         .otherwise = "8",
         .low = 0.1,
         .high = 30,
         .meaning = "the first head keeps 1 - 2^-slowest of its state a token"},
        {.name = "fastest", .otherwise = "5", .low = 0.1, .high = 30, .meaning = "the last head likewise"}}};

}  // namespace rankscope
