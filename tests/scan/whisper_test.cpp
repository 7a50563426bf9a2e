// Scans of a network that hears, held against what transformers recorded. Its activations layer by layer are
// compared by tests/scan/parity_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "checkpoint/load.h"
#include "checkpoint/safetensors.h"
#include "scan/scan.h"
#include "support/source_tree.h"
#include "support/temporary_folder.h"

namespace rankscope {
namespace {

class WhisperTest : public testing::Test {
 protected:
  // What --token-ids reads: the recorded decoder's tokens without the first, which is the start; the last
  // token of a text is only predicted, so nobody reads what follows here.
  WhisperTest() {
    const at::Tensor ids = recorded("decoder_input_ids");
    std::ofstream out(folder_.path() / "ids.txt");
    for (int64_t s = 0; s < ids.size(0); ++s) {
      for (int64_t t = 1; t < ids.size(1); ++t) out << ids[s][t].item<int64_t>() << ' ';
      out << "0\n";
    }
  }
  at::Tensor recorded(const std::string& name) const {
    return read_tensor(SafetensorsFile(model_ / "activations_f64.safetensors"), name);
  }

  const std::filesystem::path model_ = test::fixtures() / "models" / "whisper";
  const std::filesystem::path sounds_ = model_ / "activations.safetensors";
  TemporaryFolder folder_;
};

TEST_F(WhisperTest, AScanHearsTheFeaturesAndReadsTheTokensShiftedRight) {
  ScanRequest r;
  r.model = model_;
  r.features = sounds_;
  r.token_ids = folder_.path() / "ids.txt";
  r.dtype = "float64";
  r.lenses = {"attention"};
  int64_t compared = 0;
  for (const SampleRow& row : scan(r, {}).table.samples) {
    if (row.stream != "cross" || row.metric != "attention_entropy") continue;
    const at::Tensor p =
        recorded("cross_attentions." + std::to_string(row.layer))[row.sample][row.head];  // [queries, keys]
    const double entropy = -(p * p.log()).sum(-1).mean().item<double>() / std::log(double(p.size(1)));
    EXPECT_NEAR(row.value, entropy, 1e-10) << row.site.str();
    ++compared;
  }
  EXPECT_EQ(compared, 3 * 4 * 2);  // layers, heads, samples
}

TEST_F(WhisperTest, TheEncoderIsANetworkOfItsOwn) {
  ScanRequest r;
  r.model = model_ / "encoder";
  r.features = sounds_;
  r.lenses = {"attention"};
  EXPECT_EQ(scan(r, {}).spec.depth(), 2);
  r.features.reset();
  r.random_tokens = true;
  EXPECT_FALSE(scan(r, {}).table.rows.empty());
}

TEST_F(WhisperTest, WhatItCannotHearIsRefusedByName) {
  const auto said = [&](const std::function<void(ScanRequest&)>& change) {
    ScanRequest r;
    r.model = model_;
    change(r);
    try {
      scan(r, {});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(said([](ScanRequest&) {}), "there is no input");
  EXPECT_EQ(said([&](ScanRequest& r) { r.token_ids = folder_.path() / "ids.txt"; }),
            "this model reads sounds");
  EXPECT_EQ(said([&](ScanRequest& r) { r.features = sounds_; }),
            "the sounds are there, but nothing for the decoder to read");
  EXPECT_EQ(said([&](ScanRequest& r) {
              r.features = sounds_;
              std::ofstream(folder_.path() / "one.txt") << "1 2 3\n";
              r.token_ids = folder_.path() / "one.txt";
            }),
            "there are 2 sounds and 1 samples for the decoder");
  EXPECT_EQ(said([&](ScanRequest& r) {
              r.model = model_ / "encoder";
              r.features = sounds_;
              r.token_ids = folder_.path() / "one.txt";
            }),
            "this encoder reads sounds alone: there is no decoder to read a text");
  EXPECT_EQ(said([&](ScanRequest& r) {
              const std::vector<float> few(2 * 5 * 3);
              write_safetensors(
                  folder_.path() / "few.safetensors",
                  {{"input_features", StoredType::f32, {2, 5, 3}, std::as_bytes(std::span(few))}});
              r.features = folder_.path() / "few.safetensors";
              r.token_ids = folder_.path() / "ids.txt";
            }),
            "the model expects 5 mel bins x 18 frames, but got 5 x 3");
}

}  // namespace
}  // namespace rankscope
