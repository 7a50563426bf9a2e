// Small networks whose weights are ours to change, and the tools that plant something in them (families.h).
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "model/batch.h"
#include "model/random_source.h"
#include "parts/parameters.h"
#include "tensors/weights.h"
#include "verdict/verdict.h"

namespace rankscope::bank {

constexpr int64_t kWidth = 32, kHeads = 4, kHeadWidth = 8, kHidden = 64, kWords = 97, kMarkedWord = 0;

/// Every parameter of a network, in memory, by its full name.
class Stored : public WeightSource {
 public:
  Stored(const ModelSpec& spec, uint64_t seed) : spec_(spec) {
    const auto random = random_source(spec, seed, "float32", "cpu");
    for (const Parameter& p : parameters(spec)) {
      const std::string part = part_of(p.name);
      all_[p.name] = is_vocabulary_table(p.name)
                         ? random->row_range(p.name, 0, p.shape[0]).clone()
                         : random->load(part).get(p.name.substr(part.size() + 1)).clone();
    }
  }
  at::Tensor& operator[](const std::string& name) { return all_.at(name); }
  bool has(const std::string& name) const { return all_.count(name) > 0; }
  ModelSpec& edit() { return spec_; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, t] : all_) out.push_back(name);
    return out;
  }

  const ModelSpec& spec() const override { return spec_; }
  Weights load(const std::string& part) override {
    Weights w;
    for (const auto& [name, t] : all_)
      if (part_of(name) == part && !is_vocabulary_table(name)) w.set(name.substr(part.size() + 1), t);
    return w;
  }
  at::Tensor rows(const std::string& name, const at::Tensor& indices) override {
    return all_.at(name).index_select(0, indices);
  }
  at::Tensor row_range(const std::string& name, int64_t first, int64_t count) override {
    return all_.at(name).narrow(0, first, count);
  }

 private:
  // "blocks.3" of "blocks.3.attn.W_Q", "embed" of "embed.W_E".
  static std::string part_of(const std::string& name) {
    const size_t dot = name.find('.');
    return name.substr(0, name.starts_with("blocks.") ? name.find('.', dot + 1) : dot);
  }
  ModelSpec spec_;
  std::map<std::string, at::Tensor> all_;
};

/// Numbers of one network: functions of the bank's seed, the network and the order in which they are asked
/// for.
class Draw {
 public:
  Draw(uint64_t seed, uint64_t network, uint64_t round = 0)
      : random_{seed, static_cast<uint32_t>(network), 0}, round_(round) {}
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_.below(1u << 30, next_++)) / (1u << 30);
  }
  double log_uniform(double low, double high) { return std::exp(uniform(std::log(low), std::log(high))); }
  int64_t below(int64_t n) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(n), next_++)); }
  bool coin() { return below(2) == 1; }
  /// What is planted takes turns, so that every kind of it comes up equally often whatever the seed.
  int64_t turn(int64_t kinds) const { return static_cast<int64_t>(round_) % kinds; }
  at::Tensor normal(at::IntArrayRef shape) {
    at::Tensor t = at::empty(shape, at::kFloat);
    for (int64_t i = 0; i < t.numel(); ++i)
      t.data_ptr<float>()[i] = static_cast<float>(random_.normal(next_++));
    return t;
  }
  uint64_t number() { return random_.below(1u << 30, next_++); }

 private:
  Philox random_;
  uint64_t round_ = 0, next_ = 0;
};

/// One network, its texts, and what is true of it.
struct Planted {
  std::string family;
  ModelSpec spec;
  std::unique_ptr<Stored> weights;
  std::vector<Sample> samples;
  std::vector<std::pair<std::string, bool>> truth;                   // "alike 0": yes
  std::vector<std::string> off, rank;                                // variants the verdict needs
  bool ablate = false, use = false, null = false, channels = false;  // and what else it asks for
  bool maps = false, fisher = false;
  Thresholds limits = {};
};

inline ModelSpec spec_of(Draw& draw, int64_t length, int64_t depth = 2) {
  ModelSpec s;
  s.architecture = "planted";
  s.width = kWidth;
  s.stored_blocks = depth;
  s.position = PositionKind::learned;
  s.init.std = 1 / std::sqrt(static_cast<double>(kWidth));
  s.embedding.vocabulary = kWords;
  s.embedding.width = kWidth;
  s.embedding.positions = length;
  AttentionSpec a;
  a.heads = a.kv_heads = kHeads;
  a.d_qk = a.d_v = kHeadWidth;
  a.scale = 1 / std::sqrt(static_cast<double>(kHeadWidth));
  a.causal = draw.coin();
  const NormPlace place = draw.coin() ? NormPlace::pre : NormPlace::post;
  const NormSpec norm{place == NormPlace::pre && draw.coin() ? NormKind::rms : NormKind::layer, 1e-6};
  BlockSpec b = classic_block(place, norm, a, "mlp", {.width = kHidden});
  for (int64_t l = 0; l < depth; ++l) {
    b.weights = l;
    s.blocks.push_back(b);
  }
  if (place == NormPlace::pre) s.final_norm = norm;
  s.output.kind = HeadKind::linear;
  s.output.vocabulary = kWords;
  s.output.width = kWidth;
  return s;
}

/// Four directions of mean zero, orthogonal to each other, in the first channels. Words keep off them, so
/// that what is marked by one is marked by it alone, behind a norm too.
inline at::Tensor marker(int64_t k) {
  at::Tensor e = at::zeros({kWidth});
  e[2 * k] = std::sqrt(0.5);
  e[2 * k + 1] = -std::sqrt(0.5);
  return e;
}
constexpr double kMark = 4;  // size of a marker in a token

inline Planted healthy(std::string family, Draw& draw, int64_t samples, int64_t length) {
  Planted p;
  p.family = std::move(family);
  p.spec = spec_of(draw, length);
  p.weights = std::make_unique<Stored>(p.spec, draw.number());
  at::Tensor words = draw.normal({kWords, kWidth});
  words = words - words.mean(1, true);
  for (int64_t k = 0; k < 4; ++k) words = words - at::mv(words, marker(k)).unsqueeze(1) * marker(k);
  (*p.weights)["embed.W_E"] = words / words.square().mean(1, true).sqrt();
  (*p.weights)["embed.W_pos"].zero_();
  for (const std::string& name : p.weights->names())
    if (name.find(".b_") != std::string::npos)
      (*p.weights)[name] = 0.1 * draw.normal((*p.weights)[name].sizes());
  for (int64_t s = 0; s < samples; ++s) {
    Sample text;
    for (int64_t i = 0; i < length; ++i) text.ids.push_back(1 + draw.below(kWords - 1));
    p.samples.push_back(std::move(text));
  }
  return p;
}

inline std::string block(int64_t l, std::string_view name) { return fmt::format("blocks.{}.{}", l, name); }

/// What attention of block 0 reads of a token that holds a marker: the size of the marker there.
inline double mark_read(const Planted& p) {
  return p.spec.pre_norm() ? kMark / std::sqrt(1 + kMark * kMark / static_cast<double>(kWidth)) : kMark;
}

/// Head h of block 0 scores what is marked by `k` this many nats above everything else, whatever the query.
inline void look_at_mark(Planted& p, int64_t h, int64_t k, double nats) {
  Stored& w = *p.weights;
  const int64_t at = h * kHeadWidth;
  w["blocks.0.attn.W_Q"].narrow(0, at, kHeadWidth).zero_();
  w["blocks.0.attn.W_K"].narrow(0, at, kHeadWidth).zero_();
  w["blocks.0.attn.b_Q"].narrow(0, at, kHeadWidth).zero_();
  w["blocks.0.attn.b_Q"][at] = 1.0;
  const double scale = p.spec.blocks[0].attention().scale;
  w["blocks.0.attn.W_K"][at] = marker(k) * (nats / scale / mark_read(p));
}

inline void mark_position(Planted& p, int64_t position, int64_t k) {
  (*p.weights)["embed.W_pos"][position] = kMark * marker(k);
}

/// Every head of block 0 looks at the first token alone and carries all of it but its mark; written `c`
/// times.
inline void copy_first_token(Planted& p, double c) {
  mark_position(p, 0, 0);
  for (int64_t h = 0; h < kHeads; ++h) look_at_mark(p, h, 0, 60);
  at::Tensor eye = at::eye(kWidth);
  (*p.weights)["blocks.0.attn.W_V"] = eye - at::outer(marker(0), marker(0));
  (*p.weights)["blocks.0.attn.W_O"] = c * eye;
  (*p.weights)["blocks.0.attn.b_V"].zero_();
}

/// Takes a direction out of what a matrix writes.
inline void keep_off(at::Tensor W, const at::Tensor& e) { W -= at::outer(e, at::mv(W.t(), e)); }

// ---- The families. Degrees keep a factor 1.5 from the thresholds.

/// Keeps everybody from writing a direction, in both blocks, and, where asked for, from reading it.
inline void reserve(Planted& p, const at::Tensor& e, bool unread) {
  Stored& w = *p.weights;
  for (int64_t l = 0; l < 2; ++l) {
    for (const char* name : {"attn.W_O", "mlp.W_out"}) keep_off(w[block(l, name)], e);
    for (const char* name : {"attn.b_O", "mlp.b_out"}) w[block(l, name)] -= e * w[block(l, name)].dot(e);
    if (unread)
      for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_V", "mlp.W_in"})
        w[block(l, name)] -= at::outer(at::mv(w[block(l, name)], e), e);
  }
}

/// Every word of a sample has the same sign along a direction, every other sample the other sign.
inline void sign_samples(Planted& p, Draw& draw, double size, const at::Tensor& e) {
  at::Tensor& words = (*p.weights)["embed.W_E"];
  for (int64_t word = 0; word < kWords; ++word) words[word] += (word % 2 == 0 ? size : -size) * e;
  for (size_t s = 0; s < p.samples.size(); ++s)
    for (int64_t& id : p.samples[s].ids) id = 2 * draw.below(kWords / 2) + static_cast<int64_t>(s % 2);
}

/// Blocks that write nothing: every layer's tokens are the words, and the output is W_U N(words).
inline void silence(Planted& p) {
  for (int64_t l = 0; l < 2; ++l)
    for (const char* name : {"attn.W_O", "attn.b_O", "mlp.W_out", "mlp.b_out"})
      (*p.weights)[block(l, name)].zero_();
}

}  // namespace rankscope::bank
