// Whisper against a plain double-precision computation of it: loops over numbers, written from the formulas.
// There is no recording of the library's own; tests/fixtures/fixture_architectures.py knows how to make one.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/philox.h"
#include "base/stream_name.h"
#include "checkpoint/checkpoint.h"
#include "scan/scan.h"
#include "scan/verify.h"
#include "support/temporary_folder.h"

namespace rankscope {
namespace {

constexpr int64_t kWidth = 12, kBins = 5, kSource = 7, kTarget = 9, kWords = 23, kStart = 3;
constexpr int64_t kLayers = 2, kEncoderHeads = 3, kDecoderHeads = 2, kEncoderHidden = 14, kDecoderHidden = 10;
constexpr int64_t kSamples = 2, kTokens = 6, kFrames = 2 * kSource;

constexpr const char* kConfig =
    R"({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"],
  "d_model": 12, "num_mel_bins": 5, "max_source_positions": 7, "max_target_positions": 9, "vocab_size": 23,
  "encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 14, "decoder_layers": 2,
  "decoder_attention_heads": 2, "decoder_ffn_dim": 10, "decoder_start_token_id": 3})";

struct Matrix {
  int64_t rows, columns;
  std::vector<double> x;
  Matrix(int64_t r, int64_t c) : rows(r), columns(c), x(static_cast<size_t>(r * c)) {}
  double& at(int64_t i, int64_t j) { return x[static_cast<size_t>(i * columns + j)]; }
  double at(int64_t i, int64_t j) const { return x[static_cast<size_t>(i * columns + j)]; }
};

// Tensors of the checkpoint, each number a function of name and index, rounded to float32 as stored.
class Stored {
 public:
  const std::vector<float>& get(const std::string& name, const std::vector<int64_t>& shape) {
    auto [it, fresh] = tensors_.try_emplace(name);
    if (!fresh) return it->second.values;
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    const bool gain = name.find("layer_norm.weight") != name.npos;
    for (int64_t i = 0; i < count; ++i)
      it->second.values.push_back(static_cast<float>(
          (gain ? 1.0 : 0.0) + 0.4 * Philox{5, stream_of(name), 0}.normal(static_cast<uint64_t>(i))));
    it->second.shape = shape;
    return it->second.values;
  }
  void save(const std::filesystem::path& path) const {
    std::vector<TensorToWrite> out;
    for (const auto& [name, t] : tensors_)
      out.push_back({name, StoredType::f32, t.shape, std::as_bytes(std::span(t.values))});
    write_safetensors(path, out);
  }

 private:
  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  std::map<std::string, Tensor> tensors_;
};

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

class Whisper {
 public:
  explicit Whisper(Stored& stored) : stored_(stored) {}

  // [C, F] to [O, F / stride]: three frames, the one outside being zero.
  Matrix convolved(const Matrix& x, const std::string& name, int64_t stride) {
    const auto &W = stored_.get(name + ".weight", {kWidth, x.rows, 3}),
               &b = stored_.get(name + ".bias", {kWidth});
    Matrix y(kWidth, (x.columns - 1) / stride + 1);
    for (int64_t o = 0; o < kWidth; ++o)
      for (int64_t t = 0; t < y.columns; ++t) {
        double sum = b[size_t(o)];
        for (int64_t c = 0; c < x.rows; ++c)
          for (int64_t k = 0; k < 3; ++k)
            if (const int64_t f = stride * t + k - 1; f >= 0 && f < x.columns)
              sum += double(W[size_t((o * x.rows + c) * 3 + k)]) * x.at(c, f);
        y.at(o, t) = gelu(sum);
      }
    return y;
  }

  Matrix linear(const Matrix& x, const std::string& name, int64_t out, bool bias = true) {
    const auto& W = stored_.get(name + ".weight", {out, x.columns});
    Matrix y(x.rows, out);
    for (int64_t i = 0; i < x.rows; ++i)
      for (int64_t o = 0; o < out; ++o) {
        double sum = bias ? stored_.get(name + ".bias", {out})[size_t(o)] : 0.0;
        for (int64_t j = 0; j < x.columns; ++j) sum += double(W[size_t(o * x.columns + j)]) * x.at(i, j);
        y.at(i, o) = sum;
      }
    return y;
  }

  Matrix normed(const Matrix& x, const std::string& name) {
    const auto &w = stored_.get(name + ".weight", {kWidth}), &b = stored_.get(name + ".bias", {kWidth});
    Matrix y(x.rows, x.columns);
    for (int64_t i = 0; i < x.rows; ++i) {
      double mean = 0, variance = 0;
      for (int64_t j = 0; j < kWidth; ++j) mean += x.at(i, j) / double(kWidth);
      for (int64_t j = 0; j < kWidth; ++j) variance += std::pow(x.at(i, j) - mean, 2) / double(kWidth);
      for (int64_t j = 0; j < kWidth; ++j)
        y.at(i, j) = (x.at(i, j) - mean) / std::sqrt(variance + 1e-5) * w[size_t(j)] + b[size_t(j)];
    }
    return y;
  }

  // `patterns` takes [heads, queries, keys].
  Matrix attended(const Matrix& x, const Matrix& other, const std::string& name, int64_t heads, bool causal,
                  std::vector<double>& patterns) {
    const Matrix q = linear(x, name + ".q_proj", kWidth), k = linear(other, name + ".k_proj", kWidth, false),
                 v = linear(other, name + ".v_proj", kWidth);
    const int64_t d = kWidth / heads;
    Matrix z(x.rows, kWidth);
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < x.rows; ++i) {
        std::vector<double> p;
        double sum = 0;
        for (int64_t j = 0; j < other.rows; ++j) {
          double score = 0;
          for (int64_t c = h * d; c < (h + 1) * d; ++c) score += q.at(i, c) * k.at(j, c);
          p.push_back(causal && j > i ? 0.0 : std::exp(score / std::sqrt(double(d))));
          sum += p.back();
        }
        for (int64_t j = 0; j < other.rows; ++j) {
          p[size_t(j)] /= sum;
          for (int64_t c = h * d; c < (h + 1) * d; ++c) z.at(i, c) += p[size_t(j)] * v.at(j, c);
        }
        patterns.insert(patterns.end(), p.begin(), p.end());
      }
    return linear(z, name + ".out_proj", kWidth);
  }

  void add(Matrix& x, const Matrix& y) {
    for (size_t i = 0; i < x.x.size(); ++i) x.x[i] += y.x[i];
  }

  void mlp(Matrix& x, const std::string& layer, int64_t hidden) {
    Matrix h = linear(normed(x, layer + ".final_layer_norm"), layer + ".fc1", hidden);
    for (double& value : h.x) value = gelu(value);
    add(x, linear(h, layer + ".fc2", kWidth));
  }

  void positions(Matrix& x, const std::string& name, int64_t count) {
    const auto& W = stored_.get(name, {count, kWidth});
    for (size_t i = 0; i < x.x.size(); ++i) x.x[i] += W[i];
  }

  using Seen = std::map<std::string, std::vector<double>>;  // of all samples, one behind another

  void run(const Matrix& features, const std::vector<int64_t>& ids, Seen& seen) {
    const auto keep = [&](const std::string& name, const std::vector<double>& x) {
      seen[name].insert(seen[name].end(), x.begin(), x.end());
    };
    const Matrix heard = convolved(convolved(features, "model.encoder.conv1", 1), "model.encoder.conv2", 2);
    Matrix e(kSource, kWidth);
    for (int64_t t = 0; t < kSource; ++t)
      for (int64_t c = 0; c < kWidth; ++c) e.at(t, c) = heard.at(c, t);
    positions(e, "model.encoder.embed_positions.weight", kSource);
    keep("encoder_hidden_states.0", e.x);
    for (int64_t l = 0; l < kLayers; ++l) {
      const std::string layer = fmt::format("model.encoder.layers.{}", l);
      const Matrix read = normed(e, layer + ".self_attn_layer_norm");
      std::vector<double> p;
      add(e, attended(read, read, layer + ".self_attn", kEncoderHeads, false, p));
      keep(fmt::format("encoder_attentions.{}", l), p);
      mlp(e, layer, kEncoderHidden);
      if (l + 1 < kLayers) keep(fmt::format("encoder_hidden_states.{}", l + 1), e.x);
    }
    e = normed(e, "model.encoder.layer_norm");
    keep(fmt::format("encoder_hidden_states.{}", kLayers), e.x);
    keep("encoder_last_hidden_state", e.x);

    const auto& words = stored_.get("model.decoder.embed_tokens.weight", {kWords, kWidth});
    Matrix x(kTokens, kWidth);
    for (int64_t t = 0; t < kTokens; ++t)
      for (int64_t c = 0; c < kWidth; ++c) x.at(t, c) = words[size_t(ids[size_t(t)] * kWidth + c)];
    positions(x, "model.decoder.embed_positions.weight", kTarget);
    keep("decoder_hidden_states.0", x.x);
    for (int64_t l = 0; l < kLayers; ++l) {
      const std::string layer = fmt::format("model.decoder.layers.{}", l);
      std::vector<double> own, cross;
      const Matrix read = normed(x, layer + ".self_attn_layer_norm");
      add(x, attended(read, read, layer + ".self_attn", kDecoderHeads, true, own));
      add(x, attended(normed(x, layer + ".encoder_attn_layer_norm"), e, layer + ".encoder_attn",
                      kDecoderHeads, false, cross));
      keep(fmt::format("decoder_attentions.{}", l), own);
      keep(fmt::format("cross_attentions.{}", l), cross);
      mlp(x, layer, kDecoderHidden);
      if (l + 1 < kLayers) keep(fmt::format("decoder_hidden_states.{}", l + 1), x.x);
    }
    x = normed(x, "model.decoder.layer_norm");
    keep(fmt::format("decoder_hidden_states.{}", kLayers), x.x);
    keep("last_hidden_state", x.x);
    Matrix logits(kTokens, kWords);
    for (int64_t t = 0; t < kTokens; ++t)
      for (int64_t w = 0; w < kWords; ++w)
        for (int64_t c = 0; c < kWidth; ++c)
          logits.at(t, w) += double(words[size_t(w * kWidth + c)]) * x.at(t, c);
    keep("logits", logits.x);
  }

 private:
  Stored& stored_;
};

std::vector<int64_t> shape_of(const std::string& name) {
  if (name == "logits") return {kSamples, kTokens, kWords};
  if (name.starts_with("encoder_attentions")) return {kSamples, kEncoderHeads, kSource, kSource};
  if (name.starts_with("decoder_attentions")) return {kSamples, kDecoderHeads, kTokens, kTokens};
  if (name.starts_with("cross_attentions")) return {kSamples, kDecoderHeads, kTokens, kSource};
  return {kSamples, name.starts_with("encoder") ? kSource : kTokens, kWidth};
}

// A folder with a checkpoint, sounds, and what the plain computation makes of them.
class WhisperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_.path() / "config.json") << kConfig;
    Stored stored;
    Whisper whisper(stored);
    const Philox random{11, 1, 0};
    std::vector<float> features;
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < kSamples * kBins * kFrames; ++i)
      features.push_back(static_cast<float>(random.normal(static_cast<uint64_t>(i))));
    std::string lines;
    for (int64_t s = 0; s < kSamples; ++s) {
      Matrix sound(kBins, kFrames);
      for (size_t i = 0; i < sound.x.size(); ++i) sound.x[i] = features[size_t(s) * sound.x.size() + i];
      std::vector<int64_t> own;
      for (int64_t t = 0; t < kTokens; ++t) own.push_back(t == 0 ? kStart : (7 * t + 5 * s) % kWords);
      whisper.run(sound, own, seen_);
      ids.insert(ids.end(), own.begin(), own.end());
      for (int64_t t = 1; t < kTokens; ++t) lines += fmt::format("{} ", own[size_t(t)]);
      lines += "0\n";  // the last token is only predicted, so nobody reads it
    }
    stored.save(folder_.path() / "model.safetensors");
    std::ofstream(folder_.path() / "ids.txt") << lines;
    std::vector<TensorToWrite> out{
        {"input_features", StoredType::f32, {kSamples, kBins, kFrames}, std::as_bytes(std::span(features))},
        {"decoder_input_ids", StoredType::i64, {kSamples, kTokens}, std::as_bytes(std::span(ids))}};
    for (const auto& [name, values] : seen_)
      out.push_back({name, StoredType::f64, shape_of(name), std::as_bytes(std::span(values))});
    write_safetensors(folder_.path() / "activations.safetensors", out);
  }

  double worst(const char* dtype) const {
    double worst = 0;
    const auto errors = verify({folder_.path(), folder_.path() / "activations.safetensors", dtype, "cpu", 1});
    EXPECT_EQ(errors.size(), seen_.size());  // nothing was passed over
    for (const LayerError& e : errors) worst = std::max(worst, e.relative());
    return worst;
  }

  TemporaryFolder folder_;
  Whisper::Seen seen_;
};

// The bounds of the parity tests.
TEST_F(WhisperTest, EveryLayerIsThatOfThePlainComputation) {
  EXPECT_LE(worst("float64"), 1e-10);
  EXPECT_LE(worst("float32"), 2e-5);
}

TEST_F(WhisperTest, AScanHearsTheFeaturesAndReadsTheTokensShiftedRight) {
  ScanRequest r;
  r.model = folder_.path();
  r.features = folder_.path() / "activations.safetensors";
  r.token_ids = folder_.path() / "ids.txt";
  r.dtype = "float64";
  r.lenses = {"attention"};
  const ScanResult result = scan(r, {});
  int64_t compared = 0;
  for (const SampleRow& row : result.table.samples) {
    if (row.stream != "cross") continue;
    const std::vector<double>& all = seen_.at(fmt::format("cross_attentions.{}", row.layer));
    double entropy = 0;
    for (int64_t i = 0; i < kTokens * kSource; ++i) {
      const double p = all[size_t((row.sample * kDecoderHeads + row.head) * kTokens * kSource + i)];
      entropy -= p * std::log(p) / std::log(double(kSource)) / double(kTokens);
    }
    EXPECT_NEAR(row.value, entropy, 1e-10) << row.site.str();
    ++compared;
  }
  EXPECT_EQ(compared, kLayers * kDecoderHeads * kSamples);
}

TEST_F(WhisperTest, TheEncoderIsANetworkOfItsOwn) {
  ScanRequest r;
  r.model = folder_.path() / "encoder";
  r.features = folder_.path() / "activations.safetensors";
  r.lenses = {"attention"};
  EXPECT_EQ(scan(r, {}).spec.depth(), kLayers);
  r.features.reset();
  r.random_tokens = true;
  EXPECT_FALSE(scan(r, {}).table.rows.empty());
}

TEST_F(WhisperTest, WhatItCannotHearIsRefusedByName) {
  const auto said = [&](const std::function<void(ScanRequest&)>& change) {
    ScanRequest r;
    r.model = folder_.path();
    change(r);
    try {
      scan(r, {});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto sounds = folder_.path() / "activations.safetensors";
  EXPECT_EQ(said([](ScanRequest&) {}), "there is no input");
  EXPECT_EQ(said([&](ScanRequest& r) { r.token_ids = folder_.path() / "ids.txt"; }),
            "this model reads sounds");
  EXPECT_EQ(said([&](ScanRequest& r) { r.features = sounds; }),
            "the sounds are there, but nothing for the decoder to read");
  EXPECT_EQ(said([&](ScanRequest& r) {
              r.features = sounds;
              std::ofstream(folder_.path() / "one.txt") << "1 2 3\n";
              r.token_ids = folder_.path() / "one.txt";
            }),
            "there are 2 sounds and 1 samples for the decoder");
  EXPECT_EQ(said([&](ScanRequest& r) {
              const std::vector<float> few(2 * 5 * 3);
              write_safetensors(
                  folder_.path() / "few.safetensors",
                  {{"input_features", StoredType::f32, {2, 5, 3}, std::as_bytes(std::span(few))}});
              r.features = folder_.path() / "few.safetensors";
              r.token_ids = folder_.path() / "ids.txt";
            }),
            "the model expects 5 mel bins x 14 frames, but got 15 values");
}

}  // namespace
}  // namespace rankscope
