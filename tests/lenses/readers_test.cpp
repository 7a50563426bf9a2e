// The lens readers against loops, and against what its numbers must not depend on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/lens_run.h"

namespace rankscope::testing {
namespace {

constexpr int64_t kUnits = 7;

/// Tokens of a few samples, [N, units]: what a sample has in common, and what tells its tokens apart.
at::Tensor tokens(const std::vector<int64_t>& lengths, double common, double apart) {
  std::vector<at::Tensor> all;
  for (const int64_t n : lengths)
    all.push_back(common * at::randn({1, kUnits}, at::kDouble) + apart * at::randn({n, kUnits}, at::kDouble));
  return at::cat(all);
}

/// mean over units of E (x - m)^2 / E (x - mu)^2, with loops.
double plain_spread(const at::Tensor& x, const std::vector<int64_t>& lengths) {
  double sum = 0;
  for (int64_t u = 0; u < x.size(1); ++u) {
    double within = 0, mean = 0, total = 0;
    const auto at = [&](int64_t i) { return x[i][u].item<double>(); };
    for (int64_t i = 0; i < x.size(0); ++i) mean += at(i) / static_cast<double>(x.size(0));
    for (int64_t i = 0; i < x.size(0); ++i) total += (at(i) - mean) * (at(i) - mean);
    for (int64_t s = 0, first = 0; s < static_cast<int64_t>(lengths.size());
         first += lengths[static_cast<size_t>(s++)]) {
      double own = 0;
      const int64_t n = lengths[static_cast<size_t>(s)];
      for (int64_t i = first; i < first + n; ++i) own += at(i) / static_cast<double>(n);
      for (int64_t i = first; i < first + n; ++i) within += (at(i) - own) * (at(i) - own);
    }
    sum += within / total;
  }
  return sum / static_cast<double>(x.size(1));
}

/// The least number that sd / rms does not exceed in nine of ten of those units that differ, with loops.
double plain_sd_rel_p90(const at::Tensor& x) {
  std::vector<double> all;
  for (int64_t u = 0; u < x.size(1); ++u) {
    double mean = 0, squares = 0, apart = 0;
    const auto n = static_cast<double>(x.size(0));
    const auto at = [&](int64_t i) { return x[i][u].item<double>(); };
    for (int64_t i = 0; i < x.size(0); ++i) mean += at(i) / n, squares += at(i) * at(i) / n;
    for (int64_t i = 0; i < x.size(0); ++i) apart += (at(i) - mean) * (at(i) - mean) / n;
    if (apart > 0) all.push_back(std::sqrt(apart / squares));
  }
  std::ranges::sort(all);
  for (size_t i = 0; i < all.size(); ++i)
    if (10 * (i + 1) >= 9 * all.size()) return all[i];
  return 0;
}

/// (tr K)^2 / ||K||_F^2 of units over their standard deviations, by the eigenvalues of their correlations.
double plain_unit_rank(const at::Tensor& x) {
  const at::Tensor e = at::linalg_eigvalsh(at::corrcoef(x.t()));
  return (e.sum().square() / e.square().sum()).item<double>();
}

/// What the lens says in front of an MLP of that activation.
Collected see_units(const at::Tensor& x, const std::vector<int64_t>& lengths, Activation activation) {
  ModelSpec spec;
  spec.blocks = {classic_block(NormPlace::pre, {NormKind::layer}, {}, "mlp",
                               {.width = x.size(1), .activation = activation})};
  const LensContext context{spec, 0, 17, 0, 0.3, {}, "blocks.0.mlp.hook_pre"};
  const Packed packed(lengths);
  const Packing packing = packed.packing();
  Seeing seeing(lens_named("readers"), context);
  seeing.whole({x, packing});
  return seeing.finish();
}

/// Sums of a few hundred doubles: each is off by at most that many roundings, and so are their ratios.
constexpr double kSums = 1e-12;

TEST(Readers, SpreadIsWhatTellsTokensOfASampleApartBesideTheCorpus) {
  at::manual_seed(1);
  const std::vector<int64_t> lengths{30, 23, 32};
  const at::Tensor x = tokens(lengths, 1.5, 0.7);
  const Collected got = see_residual("readers", x, Packed(lengths));
  EXPECT_NEAR(got.total("spread").value, plain_spread(x, lengths), kSums);
  EXPECT_GT(got.total("spread").stderr_, 0);
  EXPECT_EQ(got.total("spread").n, 3);
}

/// docs/CONVENTIONS.md: of 32 equal parts one token each, where in its part by the square of its number.
std::vector<int64_t> one_of_each_of_32_parts(int64_t n) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < 32; ++i) {
    const int64_t start = i * n / 32, width = (i + 1) * n / 32 - start;
    const double turns = static_cast<double>(i * i) * (std::sqrt(5.0) - 1) / 2;
    out.push_back(start + static_cast<int64_t>((turns - std::floor(turns)) * static_cast<double>(width)));
  }
  return out;
}

TEST(Readers, LongerSamplesAreReadAtOneTokenOfEachOf32Parts) {
  at::manual_seed(7);
  for (const int64_t n : {33, 50, 64, 100}) {
    const at::Tensor x = tokens({n, n}, 1.5, 0.7);
    std::vector<int64_t> some;
    for (int64_t s : {0, 1})
      for (const int64_t i : one_of_each_of_32_parts(n)) some.push_back(s * n + i);
    const at::Tensor read = x.index_select(0, at::tensor(some, at::kLong));
    EXPECT_NEAR(see_residual("readers", x, Packed({n, n})).total("spread").value,
                plain_spread(read, {32, 32}), kSums)
        << n;
  }
}

TEST(Readers, TextsThatRepeatThemselvesEveryFewTokensAreReadAtAllOfThem) {
  // Every p-th token is the sample's own delimiter, the others are independent.
  at::manual_seed(8);
  for (const int64_t p : {2, 3, 4, 5, 8, 13}) {
    const int64_t n = 128;
    at::Tensor x = tokens({n, n, n, n}, 1.5, 0.7);
    for (int64_t s = 0; s < 4; ++s)
      for (int64_t t = 0; t < n; t += p) x[s * n + t].copy_(x[s * n]);
    const double whole = plain_spread(x, {n, n, n, n});
    const double read = see_residual("readers", x, Packed({n, n, n, n})).total("spread").value;
    EXPECT_GT(whole, 0.05) << p;
    EXPECT_NEAR(read, whole, whole / 3) << p;  // 0 where all that is read is delimiters
  }
}

TEST(Readers, WhereNothingDiffersAtAllTheSpreadIsZero) {
  const at::Tensor x = at::ones({40, kUnits}, at::kDouble);
  EXPECT_EQ(see_residual("readers", x, Packed({20, 20})).total("spread").value, 0);
}

// A pruned unit holds its bias alone, whatever it is.
TEST(Readers, UnitsThatAreOneNumberForAllTokensSayNothingOfHowFarTheOthersDiffer) {
  at::manual_seed(9);
  const std::vector<int64_t> lengths{20, 25};
  const at::Tensor x = tokens(lengths, 1.5, 0.7), pruned = at::zeros({45, 2 * kUnits + 1}, at::kDouble);
  pruned.narrow(1, 3, kUnits).copy_(x);
  pruned.narrow(1, 0, 2).fill_(4);
  const auto difference = [&](const at::Tensor& t) {
    return see_residual("readers", t, Packed(lengths)).content("unit_sd_rel_p90");
  };
  EXPECT_GT(difference(x), 0.1);
  EXPECT_EQ(difference(pruned), difference(x));
  EXPECT_EQ(difference(at::ones_like(x)), 0);  // where all are so, that is what the layer reads
}

TEST(Readers, TokensThatDoNotDependOnTheirSampleSpreadAsFarAsAMeanOfTheirsAllows) {
  at::manual_seed(2);
  const std::vector<int64_t> lengths(64, 25);
  const Collected got = see_residual("readers", tokens(lengths, 0, 1), Packed(lengths));
  EXPECT_NEAR(got.total("spread").value, 1 - 1.0 / 25, 4 * got.total("spread").stderr_);
}

TEST(Readers, ScaleBiasAndOrderOfUnitsDoNotMatter) {
  at::manual_seed(3);
  const std::vector<int64_t> lengths{30, 30, 30};
  const at::Tensor x = tokens(lengths, 1, 0.3);
  const at::Tensor other = (x * at::randn({kUnits}, at::kDouble).exp()).index_select(1, at::randperm(kUnits));
  const Packed packed(lengths);
  const Collected a = see_residual("readers", x, packed), b = see_residual("readers", other, packed),
                  c = see_residual("readers", other + 5 * at::randn({kUnits}, at::kDouble), packed);
  EXPECT_NEAR(a.total("spread").value, b.total("spread").value, kSums);
  EXPECT_NEAR(a.total("spread").value, c.total("spread").value, kSums);
  for (int64_t s = 0; s < 3; ++s) {
    EXPECT_NEAR(a.content("unit_rank", s), c.content("unit_rank", s), kSums * 30);
    EXPECT_NEAR(a.content("unit_sd_rel_p90", s), b.content("unit_sd_rel_p90", s), kSums);
  }
}

// Of five units two let nothing through but at one token far from all others, and two are one number.
TEST(Readers, TokensFarFromTheOthersDoNotSayWhichUnitsCount) {
  at::manual_seed(12);
  const at::Tensor alive = at::randn({31, 1}, at::kDouble) + 1,
                   constant = at::full({31, 2}, 300., at::kDouble),
                   dead = at::randn({31, 2}, at::kDouble) - 100;
  const at::Tensor near = at::cat({alive, constant, dead}, 1);
  const auto difference = [](const at::Tensor& x) {
    return see_units(x, {x.size(0)}, Activation::relu).content("unit_sd_rel_p90");
  };
  const double alone = plain_sd_rel_p90(alive);
  EXPECT_NEAR(difference(near), alone, kSums);
  EXPECT_NEAR(difference(at::cat({near, at::full({1, 5}, 1e4, at::kDouble)})), alone, kSums);
  EXPECT_EQ(difference(near.narrow(1, 1, 4)), 0) << "what is alive is one number, and the dead say nothing";
}

TEST(Readers, TokensAlongOneDirectionHaveRankOne) {
  at::manual_seed(4);
  const at::Tensor x = at::outer(at::randn({40}, at::kDouble), at::randn({kUnits}, at::kDouble)) +
                       3 * at::randn({kUnits}, at::kDouble);
  EXPECT_NEAR(see_residual("readers", x).content("unit_rank"), 1, kSums);
}

TEST(Readers, UnitsThatReadMostlyOneNumberDifferLittle) {
  at::manual_seed(5);
  const at::Tensor x = at::randn({32, kUnits}, at::kDouble) + 100;
  const double got = see_residual("readers", x).content("unit_sd_rel_p90");
  EXPECT_NEAR(got, plain_sd_rel_p90(x), kSums);
  EXPECT_NEAR(got, 0.01, 4 * 0.01 / std::sqrt(2 * 31));  // 1 / 100; four errors of a deviation of 32 numbers
}

// The median one said it of a layer half of whose units do.
TEST(Readers, NineUnitsOfTenDifferByNoMoreThanIsSaid) {
  at::manual_seed(10);
  const at::Tensor base = at::randn({32, 20}, at::kDouble) + 100;
  for (const int64_t lively : {0, 1, 2, 3, 10}) {
    const at::Tensor x = base.clone();
    x.narrow(1, 0, lively) -= 100;
    const double got = see_residual("readers", x).content("unit_sd_rel_p90");
    EXPECT_NEAR(got, plain_sd_rel_p90(x), kSums) << lively;
    EXPECT_EQ(got > 0.5, lively > 2) << lively << " of 20 are no constants";
  }
}

TEST(Readers, UnitsWhoseActivationLetsNothingThroughAreLeftOut) {
  at::manual_seed(11);
  const std::vector<int64_t> lengths{30, 23, 32};
  const at::Tensor alive = tokens(lengths, 0.3, 0.7);  // of each some tokens of every sample pass
  // The dead differ far more than the others do, and from sample to sample alone; relu passes none of it.
  const at::Tensor dead =
      at::cat({at::full({30, 60}, -50.), at::full({23, 60}, -90.), at::full({32, 60}, -70.)})
          .to(at::kDouble) +
      at::randn({85, 60}, at::kDouble);
  const at::Tensor x = at::cat({dead, alive}, 1);
  const Collected got = see_units(x, lengths, Activation::relu),
                  all = see_units(x, lengths, Activation::identity);
  EXPECT_NEAR(got.total("spread").value, plain_spread(alive, lengths), kSums);
  EXPECT_NEAR(all.total("spread").value, plain_spread(x, lengths), kSums);
  EXPECT_GT(got.total("spread").value, 3 * all.total("spread").value) << "the dead would have hidden it";
  int64_t first = 0;
  for (size_t s = 0; s < lengths.size(); first += lengths[s++]) {
    const at::Tensor own = alive.narrow(0, first, lengths[s]);
    EXPECT_NEAR(got.content("unit_rank", static_cast<int64_t>(s)), plain_unit_rank(own), kSums * 30);
    EXPECT_NEAR(got.content("unit_sd_rel_p90", static_cast<int64_t>(s)), plain_sd_rel_p90(own), kSums);
  }
}

TEST(Readers, WhereNoUnitPassesAnythingAllAreRead) {
  at::manual_seed(12);
  const std::vector<int64_t> lengths{30, 23};
  const at::Tensor x = tokens(lengths, 1.5, 0.7) - 10;
  // Squares a hundred times as large as what is left of them: two digits less.
  EXPECT_NEAR(see_units(x, lengths, Activation::relu).total("spread").value, plain_spread(x, lengths),
              100 * kSums);
}

TEST(Readers, OneTokenFarFromTheRestDoesNotHideThatTheyAreAlike) {
  at::manual_seed(6);
  const std::vector<int64_t> lengths(8, 50);
  at::Tensor x = tokens(lengths, 1, 0.05);
  const double before = see_residual("readers", x, Packed(lengths)).total("spread").value;
  for (int64_t s = 0; s < 8; ++s) x[s * 50 + 7] += 300;
  // Every sample loses one token of fifty: what is left estimates the same share.
  EXPECT_NEAR(see_residual("readers", x, Packed(lengths)).total("spread").value, before, 0.1 * before);
}

}  // namespace
}  // namespace rankscope::testing
