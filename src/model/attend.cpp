#include "model/attend.h"

#include <algorithm>
#include <limits>

#include "attention/support/long_softmax.h"
#include "base/error.h"
#include "model/batch_tensors.h"
#include "model/long_pattern.h"
#include "model/states.h"

namespace rankscope {
namespace {

// A pattern tile stays near the size of the last cache; a GPU wants few and large ones.
int64_t tile_bytes(const at::Tensor& q) { return q.is_cuda() ? int64_t{1} << 30 : int64_t{4} << 20; }

// How many samples behind `first` are as long as it, in queries and keys.
int64_t equally_long(const Batch& batch, const Batch& keys, int64_t first) {
  int64_t last = first;
  while (last < batch.count() && batch.length(last) == batch.length(first) &&
         keys.length(last) == keys.length(first))
    ++last;
  return last - first;
}

// Samples [count, length] of numbers [N].
at::Tensor rows_of(const at::Tensor& all, int64_t begin, int64_t count, int64_t length) {
  return all.defined() ? all.narrow(0, begin, count * length).view({count, length}) : all;
}

// [N, H * d] to samples [count, length, H, d].
at::Tensor samples_of(const at::Tensor& x, int64_t begin, int64_t count, int64_t length, int64_t heads) {
  return x.narrow(0, begin, count * length).view({count, length, heads, x.size(1) / heads});
}

/// As observers see it.
class Shown : public LongPattern {
 public:
  Shown(const LongSoftmax& from, const LongStatistics& found) : from_(from), found_(found) {}
  int64_t samples() const override { return found_.mass.size(0); }
  int64_t heads() const override { return found_.mass.size(1); }
  int64_t keys() const override { return found_.received.size(2); }
  const at::Tensor& mass() const override { return found_.mass; }
  const at::Tensor& entropy() const override { return found_.entropy; }
  const at::Tensor& received() const override { return found_.received; }
  at::Tensor rows(int64_t first, int64_t count, int64_t first_head, int64_t heads,
                  const at::Tensor& index) const override {
    return from_.rows(first, count, first_head, heads, index.to(found_.mass.device()),
                      LongSoftmax::Of::pattern);
  }
  at::Tensor scores(int64_t first, int64_t count, int64_t first_head, int64_t heads,
                    const at::Tensor& index) const override {
    return from_.rows(first, count, first_head, heads, index.to(found_.mass.device()),
                      LongSoftmax::Of::scores);
  }

 private:
  const LongSoftmax& from_;
  const LongStatistics& found_;
};

using Most = std::function<int64_t(int64_t length, int64_t keys)>;
using EachInput = std::function<void(SampleGroup& group, const AttentionInput& input)>;

// Samples [first, end) in groups of equal lengths, each with what a variant is given.
void for_each_input(const Attending& in, int64_t first, int64_t end, const Most& most,
                    const EachInput& each) {
  const AttentionVariant& variant = attention_variant(in.spec.variant);
  const bool own = &in.batch == &in.keys;
  if (!own && variant.own_tokens_only)
    throw Error(fmt::format("{} attention cannot look at another stream", variant.name));
  const BatchTensors &own_tensors = tensors_of(in.batch, in.q), &key_tensors = tensors_of(in.keys, in.q);
  for (int64_t s = first; s < end;) {
    const int64_t T = in.batch.length(s), K = in.keys.length(s);
    const int64_t count = std::min({equally_long(in.batch, in.keys, s), end - s, most(T, K)});
    SampleGroup g{
        s, count,  in.batch.offsets[static_cast<size_t>(s)], T, in.keys.offsets[static_cast<size_t>(s)],
        K, nullptr};
    const at::Tensor q = samples_of(in.q, g.begin, count, T, in.spec.heads);
    const at::Tensor k = samples_of(in.k, g.key_begin, count, K, in.spec.kv_heads);
    const at::Tensor positions = rows_of(own_tensors.positions, g.begin, count, T);
    const at::Tensor key_positions = rows_of(key_tensors.positions, g.key_begin, count, K);
    const at::Tensor types = rows_of(own_tensors.types, g.begin, count, T);
    const at::Tensor gates =
        in.gates.defined() ? samples_of(in.gates, g.key_begin, count, K, in.spec.heads) : at::Tensor();
    each(g, {in.spec, in.weights, in.name, q, k, positions, key_positions, types, &gates});
    s += count;
  }
}

bool positions_ascend(const Batch& batch, const SampleGroup& g) {
  const auto begin = batch.positions.begin() + g.begin;
  for (int64_t i = 0; i < g.count; ++i)
    if (!std::is_sorted(begin + i * g.length, begin + (i + 1) * g.length)) return false;
  return true;
}

class Attention {
 public:
  Attention(const Attending& in, const at::Tensor& v, const BlockContext& context)
      : in_(in),
        v_(v),
        c_(context),
        heads_(in.spec.heads),
        variant_(attention_variant(in.spec.variant)),
        pattern_site_(in.name + (variant_.shares ? ".hook_pattern" : ".hook_mixer")),
        scores_site_(in.name + ".hook_attn_scores") {}

  at::Tensor run() {
    const std::string sink_site = in_.name + ".hook_sink";
    if (in_.spec.sinks && c_.observer.wants(sink_site))
      sink_ = at::empty({in_.q.size(0), heads_}, in_.q.options());
    const bool looked_at = sink_.defined() || c_.dropout != nullptr || c_.observer.wants(pattern_site_) ||
                           c_.observer.wants(scores_site_);
    if (looked_at || variant_.output == nullptr || &in_.batch != &in_.keys)
      by_patterns(0, in_.batch.count());
    else
      by_output();
    make_room();
    if (sink_.defined()) c_.observer.see(sink_site, sink_);
    show_states(in_.name + ".hook_state");
    at::Tensor z = whole_.defined() ? whole_ : parts_.size() == 1 ? parts_.front() : at::cat(parts_);
    const AttentionSpec& a = in_.spec;
    if (!(a.heads_off.empty() && a.heads_fixed.empty()) && c_.differentiated) z = z.clone();
    for (const int64_t h : a.heads_off) z.select(1, h).zero_();
    if (!a.heads_fixed.empty()) {
      const at::Tensor values = at::tensor(a.fixed_values, at::kDouble).view({-1, a.d_v}).to(z.options());
      for (size_t i = 0; i < a.heads_fixed.size(); ++i)
        z.select(1, a.heads_fixed[i]).copy_(values[static_cast<int64_t>(i)].expand({z.size(0), a.d_v}));
    }
    return z.flatten(1);
  }

 private:
  // Nobody looks at patterns: what they carry is enough, where the variant has that.
  void by_output() {
    const Most all = [](int64_t, int64_t) { return std::numeric_limits<int64_t>::max(); };
    for_each_input(in_, 0, in_.batch.count(), all, [&](SampleGroup& g, const AttentionInput& input) {
      const at::Tensor z =
          positions_ascend(in_.batch, g) ? variant_.output(input, values_of(g)) : at::Tensor();
      if (!z.defined()) return by_patterns(g.first, g.first + g.count);
      keep(g, 0, g.length, z.view({g.count, heads_, g.length, in_.spec.d_v}).transpose(1, 2));
    });
  }

  void by_patterns(int64_t first, int64_t end) {
    const Most most = [&](int64_t length, int64_t keys) {
      const int64_t bytes = heads_ * length * keys * in_.q.element_size();
      return std::max<int64_t>(1, tile_bytes(in_.q) / std::max<int64_t>(1, bytes));
    };
    const bool no_tiles = needs_no_tiles();
    for_each_input(in_, first, end, most, [&](SampleGroup& g, const AttentionInput& input) {
      if (no_tiles && g.length > kWholePattern)
        if (const auto without = LongSoftmax::prepare(input, value_samples(g)))
          return without_tiles(g, *without);
      g.ready = variant_.prepare(input);
      group(g);
    });
  }

  void show_states(const std::string& site) {
    if (&in_.batch != &in_.keys || !keeps_state(in_.spec) || !c_.observer.wants(site)) return;
    const Most most = [&](int64_t length, int64_t) {
      const auto count = static_cast<int64_t>(state_tokens(in_.spec.causal, length).size());
      const int64_t bytes = heads_ * count * in_.spec.d_qk * in_.spec.d_v * in_.q.element_size();
      return std::max<int64_t>(1, tile_bytes(in_.q) / bytes);
    };
    for_each_input(in_, 0, in_.batch.count(), most, [&](SampleGroup& g, const AttentionInput& input) {
      if (!positions_ascend(in_.batch, g)) return;
      const at::Tensor states = states_of(input, values_of(g));
      c_.observer.see(site, states, {g.first, 0, states.size(2)});
    });
  }

  at::Tensor value_samples(const SampleGroup& g) const {  // [S, T', VH, d_v]
    return samples_of(v_, g.key_begin, g.count, g.key_length, v_.size(1) / in_.spec.d_v);
  }
  at::Tensor values_of(const SampleGroup& g) const { return heads_first(value_samples(g), heads_); }

  void group(const SampleGroup& g) {
    const at::Tensor v = values_of(g);
    const bool whole = c_.differentiated || std::max(g.length, g.key_length) <= kWholePattern;
    const int64_t step = whole ? g.length : tile_rows(g);
    const bool show_scores = c_.observer.wants(scores_site_);
    for (int64_t row = 0; row < g.length; row += step) {
      const int64_t rows = std::min(step, g.length - row);
      at::Tensor scores, pattern = g.ready->pattern(0, g.count, row, rows, show_scores ? &scores : nullptr);
      const TilePlace place{g.first, row, g.length};
      if (scores.defined()) c_.observer.see(scores_site_, scores, place);
      c_.observer.see(pattern_site_, pattern, place);
      if (sink_.defined())
        sink_.narrow(0, g.begin, g.count * g.length)
            .view({g.count, g.length, heads_})
            .narrow(1, row, rows)
            .copy_((1 - pattern.sum(-1)).transpose(1, 2));
      if (c_.dropout != nullptr) pattern = (*c_.dropout)(pattern);
      keep(g, row, rows,
           at::bmm(pattern.view({g.count * heads_, rows, g.key_length}), v)
               .view({g.count, heads_, rows, in_.spec.d_v})
               .transpose(1, 2));
    }
  }

  // Not before queries are turned, which takes room of its own.
  void make_room() {
    if (!c_.differentiated && !whole_.defined())
      whole_ = at::empty({in_.q.size(0), heads_, in_.spec.d_v}, in_.q.options());
  }

  bool needs_no_tiles() {
    if (c_.differentiated || c_.dropout != nullptr) return false;
    if (!c_.observer.wants(pattern_site_) && !c_.observer.wants(scores_site_)) return true;
    reads_long_ = dynamic_cast<LongPatternObserver*>(&c_.observer);
    return reads_long_ != nullptr && reads_long_->reads_long(in_.name);
  }

  void without_tiles(const SampleGroup& g, const LongSoftmax& from) {
    make_room();
    const LongStatistics found = from.run(
        reads_long_ != nullptr,
        whole_.narrow(0, g.begin, g.count * g.length).view({g.count, g.length, heads_, in_.spec.d_v}));
    if (sink_.defined())
      sink_.narrow(0, g.begin, g.count * g.length)
          .view({g.count, g.length, heads_})
          .copy_((1 - found.mass).transpose(1, 2));
    if (reads_long_ != nullptr) reads_long_->see_long(in_.name, Shown(from, found), {g.first, 0, g.length});
  }

  void keep(const SampleGroup& g, int64_t row, int64_t rows, const at::Tensor& z) {
    make_room();
    if (!whole_.defined()) return parts_.push_back(z.reshape({g.count * rows, heads_, in_.spec.d_v}));
    whole_.narrow(0, g.begin, g.count * g.length)
        .view({g.count, g.length, heads_, in_.spec.d_v})
        .narrow(1, row, rows)
        .copy_(z);
  }

  int64_t tile_rows(const SampleGroup& g) const {
    return std::clamp<int64_t>(tile_bytes(in_.q) / (heads_ * g.key_length * in_.q.element_size()), 1,
                               g.length);
  }

  const Attending& in_;
  const at::Tensor& v_;
  const BlockContext& c_;
  int64_t heads_;
  const AttentionVariant& variant_;
  std::string pattern_site_, scores_site_;
  LongPatternObserver* reads_long_ = nullptr;  // who wants to know of patterns that are not held
  at::Tensor whole_;                           // [N, H, d_v]; undefined where gradients are wanted
  std::vector<at::Tensor> parts_;              // its rows group by group, where they are
  at::Tensor sink_;                            // [N, H]: what a learned sink takes, where somebody wants it
};

}  // namespace

void for_each_group(const Attending& in, const std::function<int64_t(int64_t, int64_t)>& most,
                    const std::function<void(const SampleGroup&)>& each) {
  const AttentionVariant& variant = attention_variant(in.spec.variant);
  for_each_input(in, 0, in.batch.count(), most, [&](SampleGroup& g, const AttentionInput& input) {
    g.ready = variant.prepare(input);
    each(g);
  });
}

at::Tensor attend(const Attending& in, const at::Tensor& v, const BlockContext& context) {
  return Attention(in, v, context).run();
}

}  // namespace rankscope
