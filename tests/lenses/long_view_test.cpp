// Lenses say the same of a long pattern whether they see its tiles or do without.
#include "lenses/long_view.h"

#include <gtest/gtest.h>

#include "lenses/support/on_device.h"
#include "support/lens_run.h"

namespace rankscope::testing {
namespace {

/// A pattern [S, H, T, T'] that is held after all.
class Held : public LongPattern {
 public:
  /// Rows sum to one, but for the rounding of their numbers, where there are no sinks.
  Held(const at::Tensor& pattern, bool sinks) : pattern_(pattern) {
    const at::Tensor p = pattern.to(at::kDouble);
    mass_ = p.sum(-1);
    entropy_ = at::special_entr(sinks ? p / mass_.unsqueeze(-1) : p.clamp_min(0)).sum(-1);
    received_ = p.sum(2);
  }
  int64_t samples() const override { return pattern_.size(0); }
  int64_t heads() const override { return pattern_.size(1); }
  int64_t keys() const override { return pattern_.size(3); }
  const at::Tensor& mass() const override { return mass_; }
  const at::Tensor& entropy() const override { return entropy_; }
  const at::Tensor& received() const override { return received_; }
  at::Tensor rows(int64_t first, int64_t count, int64_t first_head, int64_t heads,
                  const at::Tensor& index) const override {
    return pattern_.narrow(0, first, count).narrow(1, first_head, heads).index_select(2, index);
  }
  at::Tensor scores(int64_t first, int64_t count, int64_t first_head, int64_t heads,
                    const at::Tensor& index) const override {
    return rows(first, count, first_head, heads, index);
  }

 private:
  at::Tensor pattern_, mass_, entropy_, received_;
};

ModelSpec spec_with(bool sinks) {
  ModelSpec spec;
  BlockSpec block;
  BranchSpec branch;
  branch.name = "attn";
  AttentionSpec attention;
  attention.sinks = sinks;
  branch.part.words = attention;
  block.branches.push_back(branch);
  spec.blocks.push_back(block);
  return spec;
}

struct Told {
  Collected tiles, without;
};

/// What a lens says of `x` in tiles of 100 rows, and of all samples at once without them.
Told told(std::string_view name, const at::Tensor& x, MaskKind mask, bool sinks) {
  const ModelSpec spec = spec_with(sinks);
  const LensContext context{spec, 0, 17, 0, 0.3};
  const int64_t samples = x.size(0), T = x.size(2);
  const Packed packed(std::vector<int64_t>(static_cast<size_t>(samples), x.size(3)));
  const Packing packing = packed.packing();
  const Lens& lens = lens_named(name);
  Told out;
  Seeing seeing(lens, context);
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t row = 0; row < T; row += 100) {
      const at::Tensor tile = x.narrow(0, s, 1).narrow(2, row, std::min<int64_t>(100, T - row)).clone();
      seeing.tile({tile, {s, row, T}, mask.causal, mask.window, packing});
    }
  out.tiles = seeing.finish();
  const std::unique_ptr<Measurement> measurement = lens.start(context);
  auto* reader = dynamic_cast<LongMeasurement*>(measurement.get());
  if (reader == nullptr) throw std::logic_error(std::string(name) + " needs tiles");
  const Held held(x, sinks);
  out.without.add(lens, reader->long_pattern({held, {0, 0, T}, mask.causal, mask.window, packing}),
                  packing.samples);
  out.without.add_totals(lens, measurement->finish());
  return out;
}

// Entropies and column sums are added in another order, in double precision, and the tiles' logarithms are
// right to 3e-16 of themselves: 600 x 600 terms. Everything else reads the same rows.
constexpr double kSums = 600 * 600 * 0x1p-52;

void expect_same(std::string_view lens, const at::Tensor& x, MaskKind mask, bool sinks) {
  const Told t = told(lens, x, mask, sinks);
  ASSERT_EQ(t.tiles.samples.size(), t.without.samples.size()) << lens;
  for (const auto& [key, by_sample] : t.tiles.samples)
    for (const auto& [sample, value] : by_sample)
      EXPECT_NEAR(t.without.samples.at(key).at(sample), value, kSums * std::max(1.0, std::fabs(value)))
          << std::get<0>(key) << ", head " << std::get<1>(key) << ", sample " << sample;
  ASSERT_EQ(t.tiles.values.size(), t.without.values.size()) << lens;
  for (const auto& [key, total] : t.tiles.values) {
    const Collected::Value& other = t.without.values.at(key);
    EXPECT_NEAR(other.value, total.value, kSums * std::max(1.0, std::fabs(total.value))) << std::get<0>(key);
    EXPECT_EQ(other.n, total.n) << std::get<0>(key);
    if (!std::isnan(total.stderr_)) {
      EXPECT_NEAR(other.stderr_, total.stderr_, kSums) << std::get<0>(key);
    }
  }
}

at::Tensor patterns(MaskKind mask) {
  at::manual_seed(8);
  return at::stack({random_pattern(3, 600, mask), random_pattern(3, 600, mask)});
}

TEST(LongViews, SayWhatTilesSay) {
  for (const MaskKind mask : {MaskKind{}, MaskKind{true}, MaskKind{true, 200}}) {
    const at::Tensor p = patterns(mask);
    for (const char* lens : {"attention", "sinks", "margins", "pattern_spectra"})
      expect_same(lens, p, mask, false);
    const at::Tensor scores = p.log();  // -inf where hidden
    expect_same("logits", scores, mask, false);
  }
}

TEST(LongViews, SayItTheDevicesWayToo) {
  const AsOnDevice as_on_device;
  const at::Tensor p = patterns({true});
  for (const char* lens : {"attention", "sinks", "margins", "pattern_spectra"})
    expect_same(lens, p, {true}, false);
}

// 64 rows of 4,200 keys are a megabyte: eight heads come at once, and the ninth behind them.
TEST(LongViews, SayItOfManyHeadsAFewAtATime) {
  at::manual_seed(9);
  const at::Tensor p = at::softmax(at::randn({1, 9, 520, 4200}), -1);
  expect_same("margins", p, {}, false);
  // In double precision: a product of one head may round otherwise than that of nine.
  expect_same("logits", p.to(at::kDouble), {}, false);
}

TEST(LongViews, OfRowsWithALearnedSinkAreOfWhatIsLeft) {
  const at::Tensor p = patterns({true}) * 0.5;
  expect_same("attention", p, {true}, true);
}

TEST(LongViews, EigenvaluesAreNotTakenOfThem) {
  const Told t = told("eigen", patterns({}), {}, false);
  EXPECT_TRUE(t.tiles.samples.empty() && t.without.samples.empty());
}

}  // namespace
}  // namespace rankscope::testing
