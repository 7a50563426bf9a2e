// What every lens promises, held on random inputs: it reports the metrics it declares and no others, within
// the ranges it declares; how samples are batched and matrices tiled changes nothing; float32 and float64
// agree.
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lenses/support/on_device.h"
#include "model/states.h"
#include "support/lens_run.h"
#include "verdict/rule.h"

namespace rankscope::testing {
namespace {

constexpr int64_t kWidth = 24, kHeads = 2, kHeadWidth = 6;

struct Inputs {
  std::vector<int64_t> lengths;
  MaskKind mask;
  at::Tensor x, z, W_O;
  std::vector<at::Tensor> patterns;  // [heads, T, T] by sample
  std::vector<uint8_t> content;
  BlockSpec block;
  Weights weights;
};

/// `more` samples: kLong has attention that is read through sampled rows, kLongest also such tokens.
constexpr int64_t kLong = 520, kLongest = 2100;
Inputs random_inputs(uint64_t seed, MaskKind mask, const std::vector<int64_t>& more = {}) {
  at::manual_seed(seed);
  Inputs in;
  in.lengths = {7, 2, 12, 12, 5};
  in.lengths.insert(in.lengths.end(), more.begin(), more.end());
  in.mask = mask;
  int64_t N = 0;
  for (const int64_t T : in.lengths) {
    in.patterns.push_back(random_pattern(kHeads, T, mask));
    N += T;
    for (int64_t i = 0; i < T; ++i) in.content.push_back(i > 0 || !mask.causal);
  }
  in.x = at::randn({N, kWidth}) + 0.5 * at::randn({1, kWidth});
  in.x[3] *= 100.0;              // a massive token
  in.x.select(1, 5).mul_(60.0);  // a massive channel
  in.z = at::randn({N, kHeads, kHeadWidth});
  in.W_O = at::randn({kWidth, kHeads * kHeadWidth});
  in.block = classic_block(NormPlace::pre, {NormKind::layer}, {}, "");
  AttentionSpec& a = in.block.attention();
  a.heads = a.kv_heads = kHeads, a.d_qk = a.d_v = kHeadWidth;
  for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_V"})
    in.weights.set(name, at::randn({kHeads * kHeadWidth, kWidth}));
  in.weights.set("attn.W_O", in.W_O);
  in.weights.set("ln1.w", at::ones({kWidth}));
  return in;
}

Inputs widened(const Inputs& in) {
  Inputs out{
      in.lengths, in.mask, in.x.to(at::kDouble), in.z.to(at::kDouble), in.W_O.to(at::kDouble), {}, in.content,
      in.block,   {}};
  for (const at::Tensor& p : in.patterns) out.patterns.push_back(p.to(at::kDouble));
  for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_V", "attn.W_O", "ln1.w"})
    out.weights.set(name, in.weights.get(name).to(at::kDouble));
  return out;
}

enum class Feeding { one_batch, one_sample_each, tiles };

// States of two rows, as many as a lens looks at, one below the other.
at::Tensor as_states(const at::Tensor& patterns, bool causal) {
  const int64_t T = patterns.size(3), rows = 2 * static_cast<int64_t>(state_tokens(causal, T).size());
  return patterns.index_select(2, at::arange(rows, patterns.options().dtype(at::kLong)).remainder(T));
}

void feed(Seeing& seeing, const Lens& lens, const Inputs& in, Feeding feeding) {
  const auto takes = [&](SiteForm form) {
    return std::any_of(lens.sites.begin(), lens.sites.end(),
                       [&](const SiteUse& u) { return u.form == form; });
  };
  const auto batch = [&](size_t first, size_t count) {
    int64_t before = 0, N = 0;
    for (size_t s = 0; s < first + count; ++s) (s < first ? before : N) += in.lengths[s];
    const Packed packed({in.lengths.begin() + static_cast<std::ptrdiff_t>(first),
                         in.lengths.begin() + static_cast<std::ptrdiff_t>(first + count)},
                        {in.content.begin() + before, in.content.begin() + before + N},
                        static_cast<int64_t>(first));
    const Packing packing = packed.packing();
    const at::Tensor x = in.x.narrow(0, before, N), z = in.z.narrow(0, before, N);
    // What learned sinks or experts take, or gates let pass, is a number per head or expert, from 0 to 1.
    const bool shares = lens.name == "learned_sinks" || lens.name == "routing" || lens.name == "gates";
    const at::Tensor seen = shares ? x.narrow(1, 0, kHeads).clamp(0.0, 1.0) : x;
    if (takes(SiteForm::whole)) seeing.whole({seen, packing});
    if (takes(SiteForm::factored)) seeing.factored({z, in.W_O, x, packing});
    if (takes(SiteForm::experts))
      for (int64_t e = 0; e < kHeads; ++e)  // every (e + 1)-th token takes it, however tokens are batched
        seeing.expert({e, x.slice(0, (e + 1 - before % (e + 1)) % (e + 1), N, e + 1)});
    if (!takes(SiteForm::tiles)) return;
    for (size_t s = 0; s < count;) {  // runs of one length go together, as in the pass
      size_t end = s + 1;
      while (end < count && in.lengths[first + end] == in.lengths[first + s]) ++end;
      const std::vector<at::Tensor> run(in.patterns.begin() + static_cast<std::ptrdiff_t>(first + s),
                                        in.patterns.begin() + static_cast<std::ptrdiff_t>(first + end));
      const at::Tensor whole =
          lens.name == "states" ? as_states(at::stack(run), in.mask.causal) : at::stack(run);
      const int64_t T = whole.size(2);
      if (feeding == Feeding::tiles) {
        for (size_t k = s; k < end; ++k)
          for (int64_t row = 0; row < T; row += 3) {
            const at::Tensor tile = whole.narrow(0, static_cast<int64_t>(k - s), 1)
                                        .narrow(2, row, std::min<int64_t>(3, T - row))
                                        .clone();
            seeing.tile({tile, {static_cast<int64_t>(k), row, T}, in.mask.causal, in.mask.window, packing});
          }
      } else {
        seeing.tile({whole, {static_cast<int64_t>(s), 0, T}, in.mask.causal, in.mask.window, packing});
      }
      s = end;
    }
  };
  if (feeding == Feeding::one_sample_each) {
    for (size_t s = 0; s < in.lengths.size(); ++s) batch(s, 1);
  } else {
    batch(0, in.lengths.size());
  }
  if (takes(SiteForm::weights)) seeing.weights({in.block, in.weights});
}

// A network whose attention has what the lens may report: a law of its rank, of its columns, two gates.
ModelSpec with_what_it_reads(const Lens& lens) {
  ModelSpec s;
  const std::string kind = lens.name == "column_sums" ? "doubly_normalised"
                           : lens.name == "gates"     ? "delta"
                           : lens.name == "eigen"     ? "softmax"  // rows that sum to one
                                                      : "linear";
  s.blocks.push_back(classic_block(NormPlace::pre, {}, {.variant = kind, .d_qk = 2}, ""));
  return s;
}

// The second of two blocks: what the lens left at the first is there.
Collected run(const Lens& lens, const Inputs& in, Feeding feeding) {
  Seeing first(lens);
  feed(first, lens, in, feeding);
  first.finish();
  const ModelSpec spec = with_what_it_reads(lens);
  LensContext context{spec, 0, 17, 0, 0.3};
  context.before = first.left();
  Seeing second(lens, context);
  feed(second, lens, in, feeding);
  return second.finish();
}

void expect_same(const Collected& a, const Collected& b, double tolerance,
                 const std::set<std::string>& but = {}) {
  ASSERT_EQ(a.samples.size(), b.samples.size());
  ASSERT_EQ(a.values.size(), b.values.size());
  const auto near = [&](double x, double y) {
    return std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(x));
  };
  for (const auto& [key, by_sample] : a.samples) {
    if (but.count(std::get<0>(key))) continue;
    ASSERT_EQ(by_sample.size(), b.samples.at(key).size()) << std::get<0>(key);
    for (const auto& [sample, value] : by_sample)
      EXPECT_TRUE(near(value, b.samples.at(key).at(sample)))
          << std::get<0>(key) << " of sample " << sample << ": " << value << ", "
          << b.samples.at(key).at(sample);
  }
  for (const auto& [key, value] : a.values) {
    if (but.count(std::get<0>(key))) continue;
    EXPECT_TRUE(near(value.value, b.values.at(key).value)) << std::get<0>(key);
    EXPECT_EQ(value.n, b.values.at(key).n) << std::get<0>(key);
  }
}

class LensContract : public ::testing::TestWithParam<const Lens*> {};

TEST_P(LensContract, ReportsExactlyTheMetricsItDeclares) {
  std::set<std::string> declared, seen;
  for (const MetricInfo& m : GetParam()->metrics)
    EXPECT_TRUE(declared.emplace(m.name).second) << m.name << " is declared twice";
  for (const MaskKind mask : {MaskKind{}, MaskKind{true, 0}}) {  // some are for one kind of mask only
    const Collected got = run(*GetParam(), random_inputs(1, mask, {kLong, kLongest}), Feeding::one_batch);
    for (const auto& [key, values] : got.samples) seen.insert(std::get<0>(key));
    for (const auto& [key, value] : got.values) seen.insert(std::get<0>(key));
  }
  EXPECT_EQ(seen, declared);
}

// Lenses do not cut their numbers to the range: rounding alone may carry one past an edge. A sum of N doubles
// is off by at most N 2^-53 of the sum of their sizes, in whatever order it is taken, and a number that has
// an edge is a ratio of two such sums (or its root, or its logarithm), none longer than the numbers of the
// longest sample. Attention comes in float32: an entry is off by 2^-24 of itself, so a row may sum to as much
// more than one, and entropy, eigenvalue and what a key receives go with it.
double past_the_edge(const Lens& lens, const Inputs& in) {
  const int64_t longest = *std::max_element(in.lengths.begin(), in.lengths.end());
  const bool rows = std::any_of(lens.sites.begin(), lens.sites.end(),
                                [](const SiteUse& use) { return use.form == SiteForm::tiles; });
  return 2 * static_cast<double>(longest * std::max(longest, kWidth)) * 0x1p-53 + (rows ? 0x1p-24 : 0.0);
}

void expect_in_range(const Lens& lens, const Inputs& in) {
  const Collected got = run(lens, in, Feeding::one_batch);
  const double past = past_the_edge(lens, in);
  const auto check = [&](const std::string& metric, double value) {
    for (const MetricInfo& m : lens.metrics) {
      if (m.name != metric) continue;
      EXPECT_TRUE(std::isfinite(value)) << metric;
      EXPECT_GE(value, m.low - past * std::max(1.0, std::fabs(m.low))) << metric;
      EXPECT_LE(value, m.high + past * m.high) << metric;
    }
  };
  for (const auto& [key, by_sample] : got.samples)
    for (const auto& [sample, value] : by_sample) check(std::get<0>(key), value);
  for (const auto& [key, value] : got.values) check(std::get<0>(key), value.value);
}

TEST_P(LensContract, EveryValueIsFiniteAndInItsRange) {
  for (uint64_t seed = 1; seed <= 3; ++seed)
    for (const MaskKind mask : {MaskKind{}, MaskKind{true, 0}, MaskKind{true, 4}})
      expect_in_range(
          *GetParam(),
          random_inputs(seed, mask, seed == 1 ? std::vector<int64_t>{kLong} : std::vector<int64_t>{}));
}

// Inputs whose numbers lie on the edges: tokens that are all alike, that cancel, that are orthogonal, that
// are zero; attention that is uniform, that stays where it is, that goes round, that rests on one key.
Inputs at_the_edges(bool causal) {
  Inputs in = random_inputs(7, {causal, 0});
  in.lengths = {12, 30, 2, 24, 5, 64, 64, 9};
  const at::Tensor token = at::randn({1, kWidth}), half = at::randn({15, kWidth});
  in.x = at::cat({token.repeat({12, 1}), half, -half, token, -token, at::eye(kWidth), at::zeros({5, kWidth}),
                  token.repeat({64, 1}) * 1e10, at::randn({64, kWidth}), token.repeat({9, 1}) * 1e-10});
  in.z = at::randn({in.x.size(0), kHeads, kHeadWidth});
  in.content.assign(static_cast<size_t>(in.x.size(0)), 1);
  const auto uniform = [&](int64_t T) {
    const at::Tensor seen = causal ? at::ones({T, T}).tril() : at::ones({T, T});
    return seen / seen.sum(1, true);
  };
  const auto one_key = [](int64_t T) { return at::cat({at::ones({T, 1}), at::zeros({T, T - 1})}, 1); };
  const auto round = [&](int64_t T) { return causal ? at::eye(T) : at::eye(T).roll(1, 0); };
  in.patterns.clear();
  for (const at::Tensor& p :
       {uniform(12), round(30), one_key(2), at::eye(24), uniform(5), uniform(64), one_key(64), round(9)})
    in.patterns.push_back(p.expand({kHeads, p.size(0), p.size(1)}).contiguous());
  return in;
}

TEST_P(LensContract, AtTheEdgesOfItsRangeItStepsOverByNoMoreThanRounding) {
  for (const bool causal : {false, true}) expect_in_range(*GetParam(), at_the_edges(causal));
}

TEST_P(LensContract, TokensAreAllOrContentAndHeadsExist) {
  const Collected got = run(*GetParam(), random_inputs(2, {true}), Feeding::one_batch);
  const auto check = [](const Collected::Key& key) {
    EXPECT_TRUE(std::get<2>(key) == "all" || std::get<2>(key) == "content");
    EXPECT_GE(std::get<1>(key), -1);
    EXPECT_LT(std::get<1>(key), kHeads);
  };
  for (const auto& [key, values] : got.samples) check(key);
  for (const auto& [key, value] : got.values) check(key);
}

// BLAS may split a single matrix over threads and many not: sums may round differently, and no more.
constexpr double kRounding = 1e-10;

TEST_P(LensContract, BatchingChangesNothing) {
  const Inputs in = random_inputs(3, {true}, {kLong});
  expect_same(run(*GetParam(), in, Feeding::one_batch), run(*GetParam(), in, Feeding::one_sample_each),
              kRounding);
}

TEST_P(LensContract, TilesGiveWhatWholeMatricesGive) {
  const Inputs in = random_inputs(4, {true, 6}, {kLong});
  expect_same(run(*GetParam(), in, Feeding::one_batch), run(*GetParam(), in, Feeding::tiles), kRounding);
}

TEST_P(LensContract, TheSameInputGivesTheSameNumbers) {
  const Inputs in = random_inputs(5, {}, {kLong});
  expect_same(run(*GetParam(), in, Feeding::one_batch), run(*GetParam(), in, Feeding::one_batch), 0);
}

TEST_P(LensContract, Float32AgreesWithTheSameNumbersInFloat64) {
  const Inputs in = random_inputs(6, {true});
  // A numerical rank depends on the dtype by definition. The others differ by the Gram route: sqrt(eps) of
  // sigma_1.
  expect_same(run(*GetParam(), in, Feeding::one_batch), run(*GetParam(), widened(in), Feeding::one_batch),
              1e-6, {"numerical_rank"});
}

Inputs on_gpu(const Inputs& in) {
  const auto there = [](const at::Tensor& t) { return t.to(at::kCUDA); };
  Inputs out{in.lengths, in.mask, there(in.x), there(in.z), there(in.W_O), {}, in.content, in.block, {}};
  for (const at::Tensor& p : in.patterns) out.patterns.push_back(there(p));
  for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_V", "attn.W_O", "ln1.w"})
    out.weights.set(name, there(in.weights.get(name)));
  return out;
}

// In double precision both ways add the same numbers in another order. In float32 they differ by their
// routes: each is within the 1e-6 of the test above of the numbers of float64.
TEST_P(LensContract, WhereTheTensorsAreItGivesTheNumbersOfTheHost) {
  for (const MaskKind mask : {MaskKind{}, MaskKind{true, 0}, MaskKind{true, 4}})
    for (const Feeding feeding : {Feeding::one_batch, Feeding::tiles}) {
      const Inputs in = random_inputs(8, mask, {kLong}), wide = widened(in);
      const auto expect_there = [&](const Inputs& narrow_there, const Inputs& wide_there) {
        expect_same(run(*GetParam(), narrow_there, feeding), run(*GetParam(), in, feeding), 2e-6);
        expect_same(run(*GetParam(), wide_there, feeding), run(*GetParam(), wide, feeding), kRounding);
      };
      if (at::hasCUDA()) expect_there(on_gpu(in), on_gpu(wide));
      const Collected narrow_here = run(*GetParam(), in, feeding),
                      wide_here = run(*GetParam(), wide, feeding);
      const AsOnDevice as_on_device;
      expect_same(run(*GetParam(), in, feeding), narrow_here, 2e-6);
      expect_same(run(*GetParam(), wide, feeding), wide_here, kRounding);
    }
}

TEST_P(LensContract, WhereTheTensorsAreLongSamplesAreReadAtTheSameTokens) {
  if (!std::any_of(GetParam()->sites.begin(), GetParam()->sites.end(),
                   [](const SiteUse& use) { return use.form == SiteForm::whole; }))
    GTEST_SKIP() << "it reads no tokens";
  const Inputs in = random_inputs(9, {true}, {kLongest, kLongest + 30});
  const Collected here = run(*GetParam(), in, Feeding::one_batch);
  const AsOnDevice as_on_device;
  expect_same(run(*GetParam(), in, Feeding::one_batch), here, 2e-6);
}

TEST_P(LensContract, WhereTheTensorsAreItStaysInItsRange) {
  const AsOnDevice as_on_device;
  for (const bool causal : {false, true}) expect_in_range(*GetParam(), at_the_edges(causal));
}

TEST_P(LensContract, SaysWhatItIs) {
  const Lens& lens = *GetParam();
  EXPECT_FALSE(lens.name.empty());
  EXPECT_FALSE(lens.summary.empty());
  EXPECT_NE(lens.cost.find("forward passes"), std::string_view::npos);
  EXPECT_FALSE(lens.sites.empty());
  EXPECT_NO_THROW(check_sites(lens));
  for (const MetricInfo& m : lens.metrics) {
    EXPECT_FALSE(m.formula.empty()) << m.name;
    EXPECT_FALSE(m.meaning.empty()) << m.name;
    EXPECT_LT(m.low, m.high) << m.name;
    EXPECT_EQ(verdict::is_geometric(m.name), m.mean == Mean::geometric) << m.name;  // it tests them as such
  }
}

INSTANTIATE_TEST_SUITE_P(Every, LensContract, ::testing::ValuesIn(lenses()),
                         [](const auto& lens) { return std::string(lens.param->name); });

TEST(Lenses, ComeInAlphabeticalOrder) {
  EXPECT_TRUE(std::is_sorted(lenses().begin(), lenses().end(),
                             [](const Lens* a, const Lens* b) { return a->name < b->name; }));
}

}  // namespace
}  // namespace rankscope::testing
