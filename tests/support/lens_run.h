// Runs a lens on made-up views and keeps what it reports.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "lenses/lens.h"

namespace rankscope::testing {

/// Everything a lens reported, by name.
class Collected {
 public:
  using Key = std::tuple<std::string, int, std::string>;  // metric, head, tokens
  struct Value {
    double value, stderr_;
    int64_t n;
  };

  /// What a view gave (lenses/lens.h says how it is laid out), of these samples.
  void add(const Lens& lens, const at::Tensor& numbers, std::span<const int64_t> numbered) {
    if (!numbers.defined()) return;
    const at::Tensor t = numbers.to(at::kCPU, at::kDouble);
    if (t.dim() != 4 || t.size(1) != static_cast<int64_t>(numbered.size()) ||
        t.size(3) != static_cast<int64_t>(lens.metrics.size()))
      throw std::logic_error(std::string(lens.name) + " returned a tensor of the wrong shape");
    const auto a = t.accessor<double, 4>();
    for (int64_t rule = 0; rule < t.size(0); ++rule)
      for (int64_t s = 0; s < t.size(1); ++s)
        for (int64_t slot = 0; slot < t.size(2); ++slot)
          for (size_t k = 0; k < lens.metrics.size(); ++k) {
            const double value = a[rule][s][slot][static_cast<int64_t>(k)];
            if (std::isnan(value)) continue;
            auto& to = samples[key(lens, k, slot, t.size(2), rule == 0 ? "all" : "content")];
            if (!to.emplace(numbered[static_cast<size_t>(s)], value).second)
              throw std::logic_error(std::string(lens.metrics[k].name) +
                                     " was reported twice for one sample");
          }
  }
  void add_totals(const Lens& lens, const at::Tensor& totals) {
    if (!totals.defined()) return;
    const at::Tensor t = totals.to(at::kCPU, at::kDouble);
    if (t.dim() != 3 || t.size(1) != static_cast<int64_t>(lens.metrics.size()) || t.size(2) != 3)
      throw std::logic_error(std::string(lens.name) + " returned totals of the wrong shape");
    const auto a = t.accessor<double, 3>();
    for (int64_t slot = 0; slot < t.size(0); ++slot)
      for (size_t k = 0; k < lens.metrics.size(); ++k)
        if (const auto v = a[slot][static_cast<int64_t>(k)]; !std::isnan(v[0]))
          values[key(lens, k, slot, t.size(0), "all")] = {v[0], v[1], static_cast<int64_t>(v[2])};
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

 private:
  static Key key(const Lens& lens, size_t metric, int64_t slot, int64_t slots, const char* tokens) {
    return {std::string(lens.metrics[metric].name), slot + 1 == slots ? -1 : static_cast<int>(slot), tokens};
  }
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
      for (int64_t i = 0; i < length; ++i) ids.push_back(i % 5);
      samples.push_back(first++);
    }
    if (content.empty()) content.assign(static_cast<size_t>(offsets.back()), 1);
  }
  Packing packing() const { return {offsets, samples, content, ids}; }

  std::vector<int64_t> offsets, samples, ids;
  std::vector<uint8_t> content;
};

inline LensContext any_context() {
  static const ModelSpec spec;
  return {spec, 0, 17, 0, 0.3};
}

/// A lens at one site, and what it reported there.
class Seeing {
 public:
  explicit Seeing(const Lens& lens, const LensContext& context = any_context())
      : lens_(lens), measurement_(lens.start(context)) {}

  void whole(const WholeView& v) { out_.add(lens_, measurement_->whole(v), v.packing.samples); }
  void tile(const TileView& v) {
    out_.add(lens_, measurement_->tile(v),
             v.packing.samples.subspan(static_cast<size_t>(v.place.first_sample),
                                       static_cast<size_t>(v.tile.size(0))));
  }
  void factored(const FactoredView& v) { out_.add(lens_, measurement_->factored(v), v.packing.samples); }
  void expert(const ExpertView& v) { measurement_->expert(v); }
  void weights(const WeightsView& v) { measurement_->weights(v); }
  /// What it leaves for the next block; after `finish`.
  std::shared_ptr<const void> left() { return measurement_->left(); }
  Collected finish() {
    out_.add_totals(lens_, measurement_->finish());
    return std::move(out_);
  }

 private:
  const Lens& lens_;
  std::unique_ptr<Measurement> measurement_;
  Collected out_;
};

/// One residual site, seen in one batch.
inline Collected see_residual(std::string_view lens, const at::Tensor& x, const Packed& packed) {
  const Packing packing = packed.packing();
  Seeing seeing(lens_named(lens));
  seeing.whole({x, packing});
  return seeing.finish();
}
inline Collected see_residual(std::string_view lens, const at::Tensor& x) {
  return see_residual(lens, x, Packed({x.size(0)}));
}

/// Attention matrices [H, queries, keys] of several samples, each seen by itself in tiles of `rows` (0:
/// whole).
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
  Seeing seeing(lens_named(lens));
  for (size_t s = 0; s < patterns.size(); ++s) {
    const at::Tensor p = patterns[s].unsqueeze(0);
    const int64_t T = p.size(2), step = rows > 0 ? rows : T;
    for (int64_t first = 0; first < T; first += step) {
      const at::Tensor tile = p.narrow(2, first, std::min(step, T - first)).clone();
      seeing.tile({tile, {static_cast<int64_t>(s), first, T}, mask.causal, mask.window, packing});
    }
  }
  return seeing.finish();
}

/// Softmax of random scores under a mask, [heads, T, T] float32.
inline at::Tensor random_pattern(int64_t heads, int64_t T, MaskKind mask, double sharpness = 2.0) {
  at::Tensor scores = at::randn({heads, T, T}, at::kDouble) * sharpness;
  for (int64_t i = 0; i < T; ++i) {
    if (mask.causal && i + 1 < T) scores.select(1, i).narrow(1, i + 1, T - i - 1).fill_(-1e300);
    if (mask.window > 0 && i >= mask.window)
      scores.select(1, i).narrow(1, 0, i - mask.window + 1).fill_(-1e300);
    if (mask.window > 0 && i + mask.window < T)
      scores.select(1, i).narrow(1, i + mask.window, T - i - mask.window).fill_(-1e300);
  }
  return at::softmax(scores, -1).to(at::kFloat);
}

}  // namespace rankscope::testing
