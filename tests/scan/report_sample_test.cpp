#include "pass/report_sample.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/files.h"
#include "support/temporary_folder.h"

namespace rankscope {
namespace {

ModelSpec spec_of(int64_t heads) {
  ModelSpec spec;
  spec.blocks = {classic_block(NormPlace::post, {NormKind::layer}, {})};
  spec.blocks[0].attention().heads = heads;
  return spec;
}

constexpr const char* kSite = "blocks.0.attn.hook_pattern";

struct Shown {
  std::vector<NamedArray> arrays;
  std::vector<std::string> notes;
  const NamedArray& named(const std::string& end) const {
    for (const NamedArray& a : arrays)
      if (a.name.ends_with(end)) return a;
    throw std::runtime_error(end);
  }
};

// Causal attention of sample 0, which is the second of the batch, in tiles of `step` rows.
Shown show(const at::Tensor& pattern, int64_t step, const std::optional<std::filesystem::path>& file = {},
           bool late = false) {
  const int64_t H = pattern.size(0), T = pattern.size(1);
  Shown out;
  ReportSample shown(spec_of(H), T, 0, {true}, file, out.notes);
  const std::vector<int64_t> offsets{0, T, 2 * T}, samples{1, 0};
  const std::vector<uint8_t> content(static_cast<size_t>(2 * T), 1);
  const Packing packing{offsets, samples, content};
  Crossing crossing(late);
  if (step == T) {
    shown.pattern(kSite, {at::stack({pattern * 0, pattern}), {0, 0, T}, true, 0, packing}, crossing);
  } else {
    for (int64_t first = 0; first < T; first += step)
      shown.pattern(
          kSite,
          {pattern.narrow(1, first, std::min(step, T - first)).unsqueeze(0), {1, first, T}, true, 0, packing},
          crossing);
  }
  crossing.finish();
  out.arrays = shown.finish();
  return out;
}

at::Tensor causal(int64_t heads, int64_t T) {
  at::manual_seed(1);
  return at::randn({heads, T, T}).masked_fill(at::ones({T, T}).triu(1) > 0, -INFINITY).softmax(-1);
}

// What a device adds up in double and the host in float differs by the rounding of at most T float sums.
TEST(ReportSample, ADeviceAddsUpWhatTheHostDoes) {
  const TemporaryFolder folder;
  for (const int64_t T : {7, 130}) {
    const at::Tensor p = causal(3, T);
    for (const int64_t step : {T, int64_t{5}}) {
      const Shown host = show(p, step, folder.path() / "host"),
                  device = show(p, step, folder.path() / "device", true);
      ASSERT_EQ(host.arrays.size(), device.arrays.size());
      for (size_t i = 0; i < host.arrays.size(); ++i) {
        EXPECT_EQ(host.arrays[i].name, device.arrays[i].name);
        ASSERT_EQ(host.arrays[i].shape, device.arrays[i].shape);
        const auto &a = host.arrays[i].values, &b = device.arrays[i].values;
        for (size_t k = 0; k < a.size(); ++k)
          EXPECT_NEAR(a[k], b[k], static_cast<double>(T) * 0x1p-24) << host.arrays[i].name << " " << k;
      }
      EXPECT_EQ(read_file(folder.path() / "host"), read_file(folder.path() / "device"));
    }
  }
}

TEST(ReportSample, ShortAttentionIsKeptCellByCell) {
  const at::Tensor p = causal(2, 7);
  const Shown shown = show(p, 7);
  const NamedArray& map = shown.named(".pooled");
  EXPECT_EQ(map.shape, (std::vector<int64_t>{2, 7, 7}));
  EXPECT_EQ(0, std::memcmp(map.values.data(), p.contiguous().data_ptr<float>(), map.values.size() * 4));
}

// A file that promised matrices which never come would be refused at the end of the scan.
TEST(ReportSample, PromisesNoMatrixOfAttentionThatIsNoShares) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "patterns.safetensors";
  std::vector<std::string> notes;
  ModelSpec spec = spec_of(2);
  spec.blocks.front().attention().variant = "linear";
  ReportSample shown(spec, 5, 0, {true}, file, notes);
  EXPECT_TRUE(shown.finish().empty());
  EXPECT_FALSE(std::filesystem::exists(file));
  spec.blocks.front().attention().variant = "softmax";
  ReportSample promised(spec, 5, 0, {true}, file, notes);
  EXPECT_ANY_THROW(promised.finish());
}

TEST(ReportSample, PooledRowsStillSumToOne) {
  const Shown shown = show(causal(3, 250), 250);
  const NamedArray& map = shown.named(".pooled");
  const int64_t side = map.shape[1];
  EXPECT_EQ(side, ReportSample::kWidestMap);
  for (int64_t row = 0; row < 3 * side; ++row) {
    double sum = 0;
    for (int64_t j = 0; j < side; ++j) sum += map.values[static_cast<size_t>(row * side + j)];
    EXPECT_NEAR(sum, 1, 250 * 1.2e-7);  // float sums of 250 weights
  }
}

TEST(ReportSample, ReceivedIsTheMeanOverQueriesThatMaySeeTheKey) {
  const at::Tensor p = causal(2, 9);
  const Shown shown = show(p, 9);
  const NamedArray& received = shown.named(".received");
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t j = 0; j < 9; ++j)
      EXPECT_NEAR(received.values[static_cast<size_t>(h * 9 + j)],
                  p[h].select(1, j).narrow(0, j, 9 - j).to(at::kDouble).mean().item<double>(), 9 * 1.2e-7);
}

TEST(ReportSample, TilesGiveWhatWholeMatricesGive) {
  const at::Tensor p = causal(2, 120);
  const Shown whole = show(p, 120), tiled = show(p, 32);
  for (const char* name : {".pooled", ".received"})
    EXPECT_EQ(whole.named(name).values, tiled.named(name).values) << name;
}

TEST(ReportSample, TheFileHoldsTheMatricesExactly) {
  const TemporaryFolder folder;
  const at::Tensor p = causal(2, 130);
  show(p, 130, folder.path() / "p.safetensors");
  const SafetensorsFile file(folder.path() / "p.safetensors");
  const TensorEntry& entry = file.tensors().at("blocks.0.attn.hook_pattern");
  EXPECT_EQ(entry.shape, (std::vector<int64_t>{2, 130, 130}));
  EXPECT_EQ(
      0, std::memcmp(file.bytes(entry).data(), p.contiguous().data_ptr<float>(), file.bytes(entry).size()));
}

TEST(ReportSample, WhatIsTooLongIsNotKeptAndSaysSo) {
  const TemporaryFolder folder;
  std::vector<std::string> notes;
  ReportSample shown(spec_of(2), 513, 0, {true}, folder.path() / "p.safetensors", notes);
  shown.finish();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("is not kept: 513 tokens"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "p.safetensors"));
}

TEST(ReportSample, MapsOfAllHeadsTogetherFitAPage) {
  EXPECT_EQ(map_side(512, 12 * 12), 96);
  EXPECT_EQ(map_side(20, 12 * 12), 20);
  EXPECT_LE(map_side(512, 48 * 64) * map_side(512, 48 * 64) * 48 * 64, 1'500'000);
  EXPECT_EQ(map_side(512, 1'000'000), 16);
}

}  // namespace
}  // namespace rankscope
