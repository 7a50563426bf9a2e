// Runs a lens on made-up views and keeps what it reports.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "lenses/lens.h"

namespace rankscope::testing {

/// A recorder that remembers.
class Collected : public Recorder {
 public:
  using Key = std::tuple<std::string, int, std::string>;  // metric, head, tokens
  struct Value {
    double value, stderr_;
    int64_t n;
  };

  void sample(std::string_view metric, int64_t sample, double value, int head,
              std::string_view tokens) override {
    auto& slot = samples[{std::string(metric), head, std::string(tokens)}];
    if (!slot.emplace(sample, value).second)
      throw std::logic_error(std::string(metric) + " was reported twice for one sample");
  }
  void value(std::string_view metric, double value, double stderr_, int64_t n, int head,
             std::string_view tokens) override {
    if (!values.emplace(Key{std::string(metric), head, std::string(tokens)}, Value{value, stderr_, n}).second)
      throw std::logic_error(std::string(metric) + " was reported twice");
  }

  bool has(const std::string& metric, int64_t sample = 0, int head = -1,
           const std::string& tokens = "all") const {
    const auto it = samples.find({metric, head, tokens});
    return it != samples.end() && it->second.count(sample) > 0;
  }
  double of(const std::string& metric, int64_t sample = 0, int head = -1,
            const std::string& tokens = "all") const {
    if (!has(metric, sample, head, tokens))
      throw std::logic_error("no " + metric + " of sample " + std::to_string(sample) + ", head " +
                             std::to_string(head) + ", tokens " + tokens);
    return samples.at({metric, head, tokens}).at(sample);
  }
  double content(const std::string& metric, int64_t sample = 0) const {
    return of(metric, sample, -1, "content");
  }
  const Value& total(const std::string& metric, int head = -1, const std::string& tokens = "all") const {
    return values.at({metric, head, tokens});
  }

  std::map<Key, std::map<int64_t, double>> samples;
  std::map<Key, Value> values;
};

inline const Lens& lens_named(std::string_view name) {
  for (const Lens* lens : lenses())
    if (lens->name == name) return *lens;
  throw std::logic_error("there is no lens " + std::string(name));
}

/// Owns what a Packing only points to. Samples are numbered from `first`.
struct Packed {
  explicit Packed(const std::vector<int64_t>& lengths, std::vector<uint8_t> flags = {}, int64_t first = 0)
      : offsets{0}, content(std::move(flags)) {
    for (const int64_t length : lengths) {
      offsets.push_back(offsets.back() + length);
      samples.push_back(first++);
    }
    if (content.empty()) content.assign(static_cast<size_t>(offsets.back()), 1);
  }
  Packing packing() const { return {offsets, samples, content}; }

  std::vector<int64_t> offsets, samples;
  std::vector<uint8_t> content;
};

inline LensContext any_context() {
  static const ModelSpec spec;
  return {spec, 0, 17, 0};
}

/// One residual site, seen in one batch.
inline Collected see_residual(std::string_view lens, const at::Tensor& x, const Packed& packed) {
  Collected out;
  const Packing packing = packed.packing();
  const auto measurement = lens_named(lens).start(any_context());
  measurement->residual({x, packing}, out);
  measurement->finish(out);
  return out;
}
inline Collected see_residual(std::string_view lens, const at::Tensor& x) {
  return see_residual(lens, x, Packed({x.size(0)}));
}

/// Attention matrices [H, T, T] of several samples, each seen by itself in tiles of `rows` (0: whole).
struct MaskKind {
  bool causal = false;
  int64_t window = 0;
};
inline Collected see_patterns(std::string_view lens, const std::vector<at::Tensor>& patterns, MaskKind mask,
                              int64_t rows = 0) {
  std::vector<int64_t> lengths;
  for (const at::Tensor& p : patterns) lengths.push_back(p.size(-1));
  const Packed packed(lengths);
  const Packing packing = packed.packing();
  Collected out;
  const auto measurement = lens_named(lens).start(any_context());
  for (size_t s = 0; s < patterns.size(); ++s) {
    const at::Tensor p = patterns[s].unsqueeze(0);
    const int64_t T = p.size(3), step = rows > 0 ? rows : T;
    for (int64_t first = 0; first < T; first += step) {
      const at::Tensor tile = p.narrow(2, first, std::min(step, T - first)).clone();
      measurement->pattern({tile, static_cast<int64_t>(s), first, mask.causal, mask.window, packing}, out);
    }
  }
  measurement->finish(out);
  return out;
}

/// Softmax of random scores under a mask, [heads, T, T] float32.
inline at::Tensor random_pattern(int64_t heads, int64_t T, MaskKind mask, double sharpness = 2.0) {
  at::Tensor scores = at::randn({heads, T, T}, at::kDouble) * sharpness;
  for (int64_t i = 0; i < T; ++i) {
    if (mask.causal && i + 1 < T) scores.select(1, i).narrow(1, i + 1, T - i - 1).fill_(-1e300);
    if (mask.window > 0 && i >= mask.window)
      scores.select(1, i).narrow(1, 0, i - mask.window + 1).fill_(-1e300);
  }
  return at::softmax(scores, -1).to(at::kFloat);
}

}  // namespace rankscope::testing
