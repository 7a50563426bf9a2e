// Fastmax (Gerami et al. 2024): the exponential's Taylor polynomial, f_p(s) = sum_{l <= p} s^l / l!, over its
// row sum. Its matrix is a product of C(d + p, p) features of queries and of keys, so that is its largest
// rank without a mask, and its cost can grow with the number of tokens alone. Odd p can give weights below
// zero, which is an error here.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>

#include "attention/support/scores.h"
#include "base/error.h"
#include "ops/linear_attention.h"
#include "ops/polynomial_attention.h"

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

// Queries and keys whose product is the score, [S * H, T, d_qk].
struct Normalised {
  at::Tensor q, k;

  explicit Normalised(const AttentionInput& in) {
    const Scores scores(in);
    const std::string norm = word_option(in.spec, "norm");
    if (norm == "scaled") {
      q = scores.q() * (in.spec.scale / 8);
      k = scores.k();
      return;
    }
    if (norm != "standardised" && in.spec.causal)
      throw Error(fmt::format("fastmax with norm={} cannot be causal: it looks at all tokens", norm))
          .hint("norm=standardised or norm=scaled");
    const double longest = norm == "longest" ? number_option(in.spec, "longest") : 1.0;
    q = normalised(scores.q(), norm, longest);
    k = normalised(scores.k(), norm, longest);
  }
};

int64_t degree_of(const AttentionSpec& spec) { return static_cast<int64_t>(number_option(spec, "p")); }

class Fastmax : public PreparedAttention {
 public:
  explicit Fastmax(const AttentionInput& in)
      : spec_(in.spec), p_(static_cast<int>(degree_of(in.spec))), both_(in) {}

  at::Tensor pattern(int64_t first, int64_t count, int64_t first_row, int64_t rows, at::Tensor*) override {
    const int64_t H = spec_.heads, keys = both_.k.size(1);
    const at::Tensor s = at::bmm(both_.q.narrow(0, first * H, count * H).narrow(1, first_row, rows),
                                 both_.k.narrow(0, first * H, count * H).transpose(1, 2))
                             .view({count, H, rows, keys});
    at::Tensor f = s / p_ + 1;  // Horner: 1 + s (1 + s / 2 (1 + s / 3))
    for (int l = p_ - 1; l >= 1; --l) f = f * s / l + 1;
    const at::Tensor hidden = hidden_keys(spec_, first_row, rows, keys, s);
    if (p_ % 2 == 1) {
      const at::Tensor seen = hidden.defined() ? f.detach().masked_fill(hidden, 1.0) : f.detach();
      if (seen.min().item<double>() <= 0)
        throw Error(
            fmt::format("fastmax with p={} gives a weight of {:.3g}: a polynomial of odd degree falls below "
                        "zero, where its rows are no shares",
                        p_, seen.min().item<double>()))
            .hint(spec_.causal ? "an even p"
                               : "an even p, or norm=own_mean, which keeps scores between -1 and 1");
    }
    if (hidden.defined()) f = f.masked_fill(hidden, 0.0);
    return f / f.sum(-1, true);
  }

 private:
  const AttentionSpec& spec_;
  int p_;
  Normalised both_;
};

// Whether no weight can be at or below zero, by the largest score there might be: f_1 is positive above -1,
// f_3 above -1.596.
bool surely_positive(const Normalised& both, int64_t p) {
  if (p % 2 == 0) return true;
  const auto longest = [](const at::Tensor& x) {
    return std::sqrt((x.detach() * x.detach()).sum(-1).max().item<double>());
  };
  return longest(both.q) * longest(both.k) < (p == 1 ? 1.0 : 1.596);
}

// Monomials of all tokens at once up to this many numbers; more come in chunks, twice.
constexpr int64_t kMostMonomials = int64_t{1} << 22;

// Every query reads what all keys wrote: keys alone, and behind them queries alone, whose keys write nothing
// since their values are zero.
at::Tensor after_all_keys(const Normalised& both, const at::Tensor& values, int64_t p) {
  const at::Tensor all = linear_attention(
      at::cat({at::zeros_like(both.k), both.q}, 1), at::cat({both.k, at::zeros_like(both.q)}, 1),
      at::cat({values, values.new_zeros({values.size(0), both.q.size(1), values.size(2)})}, 1), {}, p);
  return all.narrow(1, both.k.size(1), both.q.size(1));
}

// Weighted values over the sum of weights, which is carried along as a value of one.
at::Tensor fastmax_output(const AttentionInput& in, const at::Tensor& v) {
  const int64_t p = degree_of(in.spec), T = in.k.size(1), e = v.size(2);
  const int64_t rows = monomial_count(in.spec.d_qk, p);
  // Pairs alone, or a state of fewer rows than there are tokens; causal, a pattern costs more than the rows
  // of a state do (docs/PERFORMANCE.md).
  const bool pays = in.spec.causal ? T <= kPairTokens || rows <= 4 * T : rows < T;
  if (in.spec.window > 0 || !pays) return {};
  const Normalised both(in);
  if (!surely_positive(both, p)) return {};
  if (in.spec.causal) return polynomial_attention(both.q, both.k, v, p);
  const at::Tensor beside = at::cat({v, at::ones_like(v.narrow(2, 0, 1))}, 2);
  const at::Tensor sums =
      both.k.size(0) * T * rows > kMostMonomials
          ? after_all_keys(both, beside, p)
          : at::bmm(monomials(both.q, p), at::bmm(monomials(both.k, p).transpose(1, 2), beside));
  return sums.narrow(2, 0, e) / sums.narrow(2, e, 1);
}

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
        {{.name = "p",
          .otherwise = "2",
          .low = 1,
          .high = 3,
          .meaning = "degree of the polynomial",
          .whole = true},
         {.name = "norm",
          .otherwise = "scaled",
          .words = {"scaled", "token_mean", "own_mean", "longest", "standardised"},
          .meaning = "of queries and keys: scores / 8; mean over tokens or over own channels off and the "
                     "longest made 1; the longest made `longest`; each token alone"},
         {.name = "longest", .otherwise = "1", .low = 0.01, .high = 100, .meaning = "with norm=longest"}},
    .rank_law =
        "at most C(d + p, p) without a mask, d the width of a query (d - 1 where channels are centred, and "
        "C(d - 3 + p, p - 2) less on a sphere)",
    .rank_ceiling = ceiling,
    .output = fastmax_output};

}  // namespace rankscope
