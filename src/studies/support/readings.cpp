#include "studies/support/readings.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "base/stats.h"
#include "lenses/lens.h"
#include "train/plain_forward.h"

namespace rankscope {
namespace {

constexpr double kSink = 3;        // nats: the verdict's threshold of sink_margin
constexpr double kSinkMass = 0.3;  // of sink_ratio, which is not read here
constexpr const char* kStream = "hook_resid_post";

struct Wanted {
  std::string_view lens, metric, name;
};
constexpr Wanted kOfTokens[] = {{"residual", "residual_fro_rel", "spread"},
                                {"spectra", "effective_rank_rel", "rank_rel"},
                                {"massive", "massive_ratio", "massive_ratio"}};
constexpr Wanted kOfAttention[] = {{"pattern_spectra", "effective_rank_rel", "attention_rank_rel"},
                                   {"pattern_spectra", "numerical_rank", "attention_rank"},
                                   {"pattern_spectra", "mixing", "mixing"},
                                   {"pattern_spectra", "rank_ceiling", "rank_ceiling"},
                                   {"margins", "sink_margin", "sink_margin"},
                                   {"sinks", "sink_mass", "sink_mass"}};
constexpr Wanted kOfHeads[] = {{"contributions", "head_evenness", "head_evenness"}};

const Lens& lens_named(std::string_view name) {
  for (const Lens* lens : lenses())
    if (lens->name == name) return *lens;
  throw std::logic_error(fmt::format("there is no lens {}", name));
}

size_t metric_named(const Lens& lens, std::string_view name) {
  for (size_t k = 0; k < lens.metrics.size(); ++k)
    if (lens.metrics[k].name == name) return k;
  throw std::logic_error(fmt::format("the lens {} has no metric {}", lens.name, name));
}

// The mean of the values there are, of each head: [samples, heads] to [heads].
at::Tensor over_samples(const at::Tensor& x, Mean mean) {
  constexpr int64_t kSamples[] = {0};
  const at::IntArrayRef samples(kSamples);
  if (mean == Mean::arithmetic) return at::nanmean(x, samples);
  const at::Tensor own = x.to(at::kCPU, at::kDouble), out = at::empty({x.size(1)}, own.options());
  for (int64_t h = 0; h < x.size(1); ++h) {
    std::vector<double> known;
    for (int64_t s = 0; s < x.size(0); ++s)
      if (const double v = own[s][h].item<double>(); !std::isnan(v)) known.push_back(v);
    out[h] = geometric_mean(known).value;
  }
  return out.to(x.device());
}

// One lens, shown a site once.
class Shown {
 public:
  Shown(const Lens& lens, const LensContext& context) : lens_(lens), measurement_(lens.start(context)) {}
  void whole(const WholeView& view) { numbers_ = measurement_->whole(view); }
  void tile(const TileView& view) { numbers_ = measurement_->tile(view); }
  void factored(const FactoredView& view) { numbers_ = measurement_->factored(view); }
  void finish() { totals_ = measurement_->finish(); }

  /// By head; one number where it is of all heads together.
  std::vector<double> of(std::string_view metric) const {
    const size_t k = metric_named(lens_, metric);
    const auto at_k = static_cast<int64_t>(k);
    at::Tensor all;  // [heads + 1]
    if (numbers_.defined()) all = over_samples(numbers_[0].select(-1, at_k), lens_.metrics[k].mean);
    if (totals_.defined() && (!all.defined() || all.isnan().all().item<bool>()))
      all = totals_.select(1, at_k).select(1, 0);
    std::vector<double> out;
    for (int64_t h = 0; all.defined() && h < all.size(0); ++h)
      if (const double value = all[h].item<double>(); !std::isnan(value)) out.push_back(value);
    return out;
  }

 private:
  const Lens& lens_;
  std::unique_ptr<Measurement> measurement_;
  at::Tensor numbers_, totals_;
};

class Reader : public BlockObserver {
 public:
  Reader(const ModelSpec& spec, const ParameterViews& parameters, int64_t sequences, int64_t tokens,
         std::vector<Readings>& out)
      : spec_(spec), parameters_(parameters), out_(out) {
    for (int64_t s = 0; s <= sequences; ++s) offsets_.push_back(s * tokens);
    samples_.resize(static_cast<size_t>(sequences));
    std::iota(samples_.begin(), samples_.end(), int64_t{0});
    content_.assign(static_cast<size_t>(sequences * tokens), 1);
    out_.assign(static_cast<size_t>(spec.depth()) + 1, {});
  }

  bool wants(std::string_view site) const override {
    return site == kStream || site == "hook_resid_pre" || site == "attn.hook_pattern" ||
           site == "attn.hook_mixer" || site == "attn.hook_z";
  }

  void see(std::string_view site, const at::Tensor& x, const TilePlace& place) override {
    if (site == "hook_resid_pre" && layer_ == 0) of_tokens(x, 0);
    if (site == "hook_resid_pre") stream_ = x;
    if (site == "attn.hook_z") of_heads(x);
    if (site == kStream) of_tokens(x, static_cast<size_t>(++layer_));
    if (site == "attn.hook_pattern" || site == "attn.hook_mixer")
      of_attention(x, place, site == "attn.hook_pattern");
  }

 private:
  LensContext context() const { return {spec_, layer_, 0, static_cast<int64_t>(samples_.size()), kSinkMass}; }
  Packing packing() const { return {offsets_, samples_, content_}; }

  template <class Show>
  void read(const Wanted& wanted, Readings& into, Show show) const {
    Shown shown(lens_named(wanted.lens), context());
    show(shown);
    shown.finish();
    const std::vector<double> values = shown.of(wanted.metric);
    if (values.empty()) return;
    into[std::string(wanted.name)] = arithmetic_mean(values).value;
    if (wanted.metric != "sink_margin") return;
    double above = 0;
    for (const double v : values) above += v >= kSink;
    into["sinks"] = above / static_cast<double>(values.size());
  }

  void of_tokens(const at::Tensor& x, size_t depth) {
    const Packing packed = packing();
    for (const Wanted& w : kOfTokens) read(w, out_[depth], [&](Shown& s) { s.whole({x, packed}); });
    out_[depth]["largest"] = x.abs().max().item<double>();
  }

  void of_attention(const at::Tensor& x, const TilePlace& place, bool shares) {
    const AttentionSpec& a = spec_.blocks[static_cast<size_t>(layer_)].attention();
    const Packing packed = packing();
    for (const Wanted& w : kOfAttention)
      if (shares || w.lens == "pattern_spectra")
        read(w, out_[static_cast<size_t>(layer_) + 1], [&](Shown& s) {
          s.tile({x, place, a.causal, a.window, packed});
        });
  }

  void of_heads(const at::Tensor& z) {
    const at::Tensor W_O = parameters_.get_or_none(fmt::format("blocks.{}.attn.W_O", layer_));
    const AttentionSpec& a = spec_.blocks[static_cast<size_t>(layer_)].attention();
    // Behind the map of values there may be more than the heads' own (a gate on what the map wrote).
    if (!W_O.defined() || W_O.size(1) != a.heads * z.size(2)) return;
    const Packing packed = packing();
    for (const Wanted& w : kOfHeads)
      read(w, out_[static_cast<size_t>(layer_) + 1], [&](Shown& s) {
        s.factored({z, W_O, stream_, packed});
      });
  }

  const ModelSpec& spec_;
  const ParameterViews& parameters_;
  std::vector<Readings>& out_;
  at::Tensor stream_;  // before the block that runs
  std::vector<int64_t> offsets_, samples_;
  std::vector<uint8_t> content_;
  int64_t layer_ = 0;  // of the block that runs
};

}  // namespace

std::vector<std::string> reading_names() {
  std::vector<std::string> out{"largest", "sinks"};
  for (const Wanted& w : kOfTokens) out.emplace_back(w.name);
  for (const Wanted& w : kOfAttention) out.emplace_back(w.name);
  for (const Wanted& w : kOfHeads) out.emplace_back(w.name);
  return out;
}

at::Tensor answers_and_readings(const ModelSpec& network, const ParameterViews& parameters,
                                const TaskBatch& batch, int64_t tokens, std::vector<Readings>* read) {
  if (read == nullptr) return plain_forward(network, parameters, batch);
  const int64_t sequences = batch.ids.defined() ? batch.sequences : batch.tokens.size(0);
  Reader reader(network, parameters, sequences, tokens, *read);
  return plain_forward(network, parameters, batch, nullptr, -1, &reader);
}

}  // namespace rankscope
