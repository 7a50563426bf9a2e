// Fastmax (Gerami et al. 2024): the exponential's Taylor polynomial, f_p(s) = sum_{l <= p} s^l / l!, over its
// row sum. Its matrix is a product of C(d + p, p) features of queries and of keys, so that is its largest
// rank without a mask, and its cost can grow with the number of tokens alone. Odd p can give weights below
// zero, which is an error here.
#include <ATen/ATen.h>

#include <cmath>

#include "attention/support/scores.h"
#include "base/error.h"

namespace rankscope {
namespace {

// [S * H, T, d]: every row shorter than the head's longest, which gets the length `longest`.
at::Tensor by_longest(const at::Tensor& x, double longest) {
  const at::Tensor lengths = at::sqrt((x * x).sum(-1, true));
  return x * (longest / lengths.amax(1, true));
}

at::Tensor normalised(const at::Tensor& x, const std::string& norm, double longest) {
  if (norm == "token_mean") return by_longest(x - x.mean(1, true), longest);
  if (norm == "own_mean") return by_longest(x - x.mean(2, true), longest);
  if (norm == "longest") return by_longest(x, longest);
  // standardised: each token alone, mean 0 and length 1
  const at::Tensor centred = x - x.mean(2, true);
  return centred / at::sqrt((centred * centred).sum(-1, true));
}

class Fastmax : public PreparedAttention {
 public:
  explicit Fastmax(const AttentionInput& in)
      : scores_(in), p_(static_cast<int>(number_option(in.spec, "p"))), norm_(word_option(in.spec, "norm")) {
    if (norm_ == "scaled") return;
    if (norm_ != "standardised" && in.spec.causal)
      throw Error(fmt::format("fastmax with norm={} cannot be causal: it looks at all tokens", norm_))
          .hint("norm=standardised or norm=scaled");
    const double longest = norm_ == "longest" ? number_option(in.spec, "longest") : 1.0;
    q_ = normalised(scores_.q(), norm_, longest);
    k_ = normalised(scores_.k(), norm_, longest);
  }

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    const AttentionSpec& spec = scores_.spec();
    const int64_t H = spec.heads;
    const at::Tensor s = norm_ == "scaled"
                             ? scores_.products(first, count, first_row, rows) / 8
                             : at::bmm(q_.narrow(0, first * H, count * H).narrow(1, first_row, rows),
                                       k_.narrow(0, first * H, count * H).transpose(1, 2))
                                   .view({count, H, rows, scores_.keys()});
    at::Tensor f = s / p_ + 1;  // Horner: 1 + s (1 + s / 2 (1 + s / 3))
    for (int l = p_ - 1; l >= 1; --l) f = f * s / l + 1;
    const at::Tensor hidden = hidden_keys(spec, first_row, rows, scores_.keys(), s);
    if (p_ % 2 == 1) {
      const at::Tensor seen = hidden.defined() ? f.detach().masked_fill(hidden, 1.0) : f.detach();
      if (seen.min().item<double>() <= 0)
        throw Error(
            fmt::format("fastmax with p={} gives a weight of {:.3g}: a polynomial of odd degree falls below "
                        "zero, where its rows are no shares",
                        p_, seen.min().item<double>()))
            .hint("an even p, or norm=own_mean, which keeps scores between -1 and 1");
    }
    if (hidden.defined()) f = f.masked_fill(hidden, 0.0);
    return f / f.sum(-1, true);
  }

 private:
  Scores scores_;
  int p_;
  std::string norm_;
  at::Tensor q_, k_;  // [S * H, T, d_qk]; undefined with norm=scaled
};

// C(d + p, p) features; tokens that are standardised have one dimension less and lie on a sphere, which ties
// the squares together.
int64_t ceiling(const AttentionSpec& spec, int64_t tokens) {
  if (spec.causal || spec.window > 0) return tokens;  // a mask has rank of its own
  const auto p = static_cast<int64_t>(number_option(spec, "p"));
  const bool sphere = word_option(spec, "norm") == "standardised";
  const bool centred = sphere || word_option(spec, "norm") == "own_mean";
  const auto features = [](int64_t d, int64_t degree) {
    double count = 1;
    for (int64_t l = 1; l <= degree; ++l) count = count * static_cast<double>(d + l) / static_cast<double>(l);
    return count;
  };
  const int64_t d = spec.d_qk - (centred ? 1 : 0);
  double most = features(d, p);
  if (sphere && p >= 2) most -= features(d, p - 2);  // |x|^2 is one of the lower ones
  return static_cast<int64_t>(std::min(most, static_cast<double>(tokens)));
}

}  // namespace

extern const AttentionVariant attention_fastmax{
    .name = "fastmax",
    .summary = "a Taylor polynomial of the exponential over its row sum: rank at most C(d + p, p)",
    .row_stochastic = true,
    .only_tokens = false,
    .own_tokens_only = false,
    .has_scores = false,
    .prepare = [](const AttentionInput& in) -> std::unique_ptr<PreparedAttention> {
      return std::make_unique<Fastmax>(in);
    },
    .options =
        {{.name = "p", .otherwise = "2", .low = 1, .high = 3, .meaning = "degree of the polynomial"},
         {.name = "norm",
          .otherwise = "scaled",
          .words = {"scaled", "token_mean", "own_mean", "longest", "standardised"},
          .meaning = "of queries and keys: scores / 8; mean over tokens or over own channels off and the "
                     "longest made 1; the longest made `longest`; each token alone"},
         {.name = "longest", .otherwise = "1", .low = 0.01, .high = 100, .meaning = "with norm=longest"}},
    .rank_law =
        "at most C(d + p, p) without a mask, d the width of a query (d - 1 where channels are centred, and "
        "C(d - 3 + p, p - 2) less on a sphere)",
    .rank_ceiling = ceiling};

}  // namespace rankscope
