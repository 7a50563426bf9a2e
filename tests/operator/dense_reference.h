// What the tests of operator/ share: fixtures with the input they came with, small models whose weights a
// test may change, and the operator written out as a matrix.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "checkpoint/load.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/random_source.h"
#include "operator/frozen.h"
#include "spec/edit.h"
#include "support/source_tree.h"
#include "support/tiny.h"
#include "tensors/norm.h"

namespace rankscope::test {

inline double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>() / b.abs().max().item<double>();
}

inline std::vector<std::string> model_fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures() / "models"))
    if (entry.is_directory() && entry.path().filename() != "clip")  // two networks in one folder
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// An encoder and a decoder: what operators refuse.
inline bool has_several_streams(const std::string& fixture) {
  return !Checkpoint(fixtures() / "models" / fixture).spec().sources.empty();
}

inline std::string fixture_name(const testing::TestParamInfo<std::string>& fixture) {
  std::string name = fixture.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

struct Loaded {
  std::unique_ptr<Checkpoint> checkpoint;
  ModelSpec spec;
  std::unique_ptr<WeightSource> source;
  Batch batch;
};

/// A fixture with three samples of different lengths (images: random pixels).
inline Loaded load(const std::string& fixture, const std::string& dtype) {
  Loaded out;
  out.checkpoint = std::make_unique<Checkpoint>(fixtures() / "models" / fixture);
  out.spec = out.checkpoint->spec();
  out.source = checkpoint_source(*out.checkpoint, dtype, "cpu");
  const EmbeddingSpec& e = out.spec.embedding;
  std::vector<Sample> samples;
  if (e.vocabulary > 0) {
    samples = random_samples({7, 4, 7}, e.vocabulary);
    for (Sample& s : samples)
      if (out.spec.position == PositionKind::relative)
        for (size_t i = 0; i < s.ids.size(); ++i) s.types.push_back(i > 2);
  } else {
    const Philox random{3, 1, 0};
    for (uint64_t k = 0; k < 2; ++k) {
      Sample s;
      for (int64_t i = 0; i < e.channels * e.image_size * e.image_size; ++i)
        s.pixels.push_back(static_cast<float>(random.normal(k * 100000 + static_cast<uint64_t>(i))));
      samples.push_back(std::move(s));
    }
  }
  out.batch = make_batches(samples, out.spec, 8).front();
  return out;
}

/// The network itself, block by block.
inline at::Tensor network_output(const ModelSpec& spec, WeightSource& source, const Batch& batch,
                                 const at::Tensor& start = {}) {
  BlockObserver nobody;
  at::Tensor x = start.defined() ? start : embed(batch, spec, source.load("embed"), source);
  for (const BlockSpec& block : spec.blocks)
    x = run_block(x, block, source.load("blocks." + std::to_string(block.weights)), batch, nobody);
  if (!spec.final_norm.acts()) return x;
  return apply_norm(x, spec.final_norm, source.load("ln_final"), "");
}

/// Random weights with random biases and gains, any of which a test may change.
class ChangedSource : public WeightSource {
 public:
  explicit ChangedSource(const ModelSpec& spec) : random_(random_source(spec, 11, "float64", "cpu")) {}
  std::function<void(const std::string& name, at::Tensor& t)> overwrite;

  const ModelSpec& spec() const override { return random_->spec(); }
  Weights load(const std::string& part) override {
    const Weights drawn = random_->load(part);
    Weights out;
    for (const Parameter& p : parameters_of(spec(), part)) {
      const std::string name = p.name.substr(part.size() + 1);
      if (!drawn.has(name)) continue;
      at::Tensor t = drawn.get(name).clone();
      const Philox noise{23, static_cast<uint32_t>(std::hash<std::string>{}(p.name)), 0};
      if (p.role != Parameter::Role::matrix)
        for (int64_t i = 0; i < t.size(0); ++i) t[i] += 0.2 * noise.normal(static_cast<uint64_t>(i));
      if (overwrite) overwrite(name, t);
      out.set(name, t);
    }
    return out;
  }
  at::Tensor rows(const std::string& p, const at::Tensor& i) override { return random_->rows(p, i); }
  at::Tensor row_range(const std::string& p, int64_t first, int64_t count) override {
    return random_->row_range(p, first, count);
  }

 private:
  std::unique_ptr<WeightSource> random_;
};

struct Tiny {
  ModelSpec spec;
  std::unique_ptr<ChangedSource> source;
  Batch batch;

  explicit Tiny(NormPlace place, const std::string& off = "",
                const std::function<void(ModelSpec&)>& edit = {}, std::vector<int64_t> lengths = {5}) {
    spec = tiny_spec(place);
    if (edit) edit(spec);
    source = std::make_unique<ChangedSource>(spec);
    batch = make_batches(random_samples(lengths, spec.embedding.vocabulary), spec, 8).front();
    if (!off.empty()) spec = without(spec, off);
  }
  FrozenNetwork freeze() const { return FrozenNetwork(spec, *source, batch); }
};

/// The linear part as a matrix [N d, N d], column by column.
inline at::Tensor dense(const AffineChain& chain, int64_t N, int64_t d) {
  const at::Tensor basis = at::eye(N * d, at::kDouble).view({N * d, N, d});
  return chain.apply(basis).reshape({N * d, -1}).t().contiguous();
}

}  // namespace rankscope::test
