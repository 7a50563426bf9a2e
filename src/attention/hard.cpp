// Hard attention: the first largest score takes all.
#include "attention/variant.h"

namespace rankscope {
namespace {

class Hard : public PreparedAttention {
 public:
  explicit Hard(const AttentionInput& in) : spec_(in.spec), keys_(in.k.size(1)) {
    q_ = heads_first(in.q, spec_.heads);
    k_ = heads_first(in.k, spec_.heads).transpose(1, 2);
  }
  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows,
                     at::Tensor* kept) override {
    const int64_t H = spec_.heads;
    const at::Tensor q = q_.narrow(0, first * H, count * H).narrow(1, first_row, rows);
    const at::Tensor scores = at::bmm(q, k_.narrow(0, first * H, count * H)).mul_(spec_.scale);
    // The softmax knows who may see whom, and keeps the order of the scores.
    const at::Tensor soft = masked_softmax(scores.view({count, H, rows, keys_}), spec_, first_row, kept);
    return at::zeros_like(soft).scatter_(3, soft.argmax(3, true), 1.0);
  }

 private:
  const AttentionSpec& spec_;
  int64_t keys_;
  at::Tensor q_, k_;
};

}  // namespace

extern const AttentionVariant attention_hard{
    .name = "hard",
    .summary = "the largest score takes all",
    .row_stochastic = true,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = true,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Hard>(in);
    }};

}  // namespace rankscope
