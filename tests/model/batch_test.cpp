#include "model/batch.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

using test::random_samples;
using test::tiny_spec;

std::string error_of(const std::vector<Sample>& samples) {
  try {
    make_batches(samples, tiny_spec(), 4);
  } catch (const Error& e) {
    return e.render();
  }
  return "no error";
}

TEST(Batches, MeetByLengthAndKeepTheirNumbers) {
  const auto batches = make_batches(random_samples({5, 2, 5, 3, 2}, 50), tiny_spec(), 2);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[0].samples, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(batches[1].samples, (std::vector<int64_t>{3, 0}));
  EXPECT_EQ(batches[1].offsets, (std::vector<int64_t>{0, 3, 8}));
  EXPECT_EQ(batches[2].positions, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(Batches, PositionZeroIsNoContentInACausalModel) {
  EXPECT_EQ(make_batches(random_samples({3}, 50), tiny_spec(NormPlace::pre), 1)[0].content,
            (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(make_batches(random_samples({3}, 50), tiny_spec(NormPlace::post), 1)[0].content,
            (std::vector<uint8_t>{1, 1, 1}));
}

TEST(Batches, SpecialTokensAreNoContent) {
  std::vector<Sample> samples = random_samples({3}, 50);
  samples[0].special = {1, 0, 1};
  EXPECT_EQ(make_batches(samples, tiny_spec(), 1)[0].content, (std::vector<uint8_t>{0, 1, 0}));
}

TEST(Batches, RefuseIdsOutsideTheVocabulary) {
  std::vector<Sample> samples = random_samples({3}, 50);
  samples[0].ids[2] = 50;
  EXPECT_EQ(error_of(samples),
            "error: token id 50 is outside the vocabulary of 50\n  in   sample 0, token 2\n"
            "  try  check that the tokenizer belongs to this model\n");
  samples[0].ids[2] = -1;
  EXPECT_NE(error_of(samples).find("token id -1 is outside"), std::string::npos);
}

TEST(Batches, RefuseMoreTokensThanPositions) {
  EXPECT_EQ(error_of(random_samples({65}, 50)),
            "error: the sample has 65 tokens, but the model has positions for 64\n  in   sample 0\n"
            "  try  pass a smaller --max-length\n");
}

TEST(Batches, RefuseImagesOfAnotherShape) {
  ModelSpec spec = tiny_spec();
  spec.embedding.vocabulary = 0;
  spec.embedding.channels = 3, spec.embedding.image_size = 4, spec.embedding.patch_size = 2;
  const auto error = [&](std::vector<int64_t> shape, size_t values) {
    Sample s;
    s.pixels.resize(values);
    s.shape = std::move(shape);
    try {
      make_batches({s}, spec, 1);
    } catch (const Error& e) {
      return e.render();
    }
    return std::string();
  };
  EXPECT_EQ(error({3, 8, 8}, 192),
            "error: the model expects 3 x 4 x 4 pixels, but got 3 x 8 x 8\n  in   sample 0\n"
            "  try  resize the images to 4 x 4, or take --random-tokens\n");
  EXPECT_NE(error({4, 4, 3}, 48).find("but got 4 x 4 x 3"), std::string::npos);  // as many, in another order
  EXPECT_NE(error({}, 47).find("but got 47 values"), std::string::npos);
  EXPECT_EQ(error({3, 4, 4}, 48), "");
}

TEST(Batches, RefuseAnEmptySample) {
  EXPECT_EQ(error_of({Sample{}}), "error: there are no tokens\n  in   sample 0\n");
}

TEST(Batch, HalvesHoldTheSameSamplesInTheSameOrder) {
  const ModelSpec spec = test::tiny_spec();
  const std::vector<Batch> whole = make_batches(test::random_samples({5, 9, 5, 12, 7}, 50), spec, 8);
  const std::vector<Batch> parts = halved(halved(whole));
  ASSERT_EQ(parts.size(), 4u);
  Batch again;
  again.offsets = {0};
  for (const Batch& part : parts) {
    EXPECT_EQ(part.offsets.front(), 0);
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    append(again.ids, part.ids);
    append(again.types, part.types);
    append(again.positions, part.positions);
    append(again.content, part.content);
    append(again.samples, part.samples);
    for (int64_t s = 0; s < part.count(); ++s) again.offsets.push_back(again.offsets.back() + part.length(s));
  }
  EXPECT_EQ(again.ids, whole.front().ids);
  EXPECT_EQ(again.types, whole.front().types);
  EXPECT_EQ(again.positions, whole.front().positions);
  EXPECT_EQ(again.content, whole.front().content);
  EXPECT_EQ(again.samples, whole.front().samples);
  EXPECT_EQ(again.offsets, whole.front().offsets);
}

TEST(Batch, HalvesOfImagesKeepTheirPixels) {
  Batch two;
  two.pixels = {1, 2, 3, 4};
  two.positions = two.types = {0, 1, 0, 1};
  two.content = {0, 1, 0, 1};
  two.offsets = {0, 2, 4};
  two.samples = {4, 6};
  const std::vector<Batch> parts = halved({two});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].pixels, (std::vector<float>{1, 2}));
  EXPECT_EQ(parts[1].pixels, (std::vector<float>{3, 4}));
  EXPECT_EQ(parts[1].samples, (std::vector<int64_t>{6}));
  EXPECT_TRUE(parts[1].ids.empty());
}

// RoBERTa: cumsum(mask) * mask + padding_idx.
TEST(Batch, PaddingTakesThePositionInFrontOfTheFirstAndIsNotCounted) {
  ModelSpec spec = tiny_spec(NormPlace::post);
  spec.embedding.padding_id = 1, spec.embedding.position_offset = 2;
  Sample s;
  s.ids = {5, 1, 6, 1};
  EXPECT_EQ(make_batches({s}, spec, 1)[0].positions, (std::vector<int64_t>{0, -1, 1, -1}));
  spec.embedding.padding_id = -1;
  EXPECT_EQ(make_batches({s}, spec, 1)[0].positions, (std::vector<int64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace rankscope
