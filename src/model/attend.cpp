#include "model/attend.h"

#include <algorithm>

#include "base/error.h"
#include "model/batch_tensors.h"
#include "model/long_pattern.h"

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
    return from_.rows(first, count, first_head, heads, index.to(found_.mass.device()), nullptr);
  }
  at::Tensor scores(int64_t first, int64_t count, int64_t first_head, int64_t heads,
                    const at::Tensor& index) const override {
    at::Tensor made_of;
    from_.rows(first, count, first_head, heads, index.to(found_.mass.device()), &made_of);
    return made_of;
  }

 private:
  const LongSoftmax& from_;
  const LongStatistics& found_;
};

class Attention {
 public:
  Attention(const Attending& in, const at::Tensor& v, const BlockContext& context)
      : in_(in),
        v_(v),
        c_(context),
        heads_(in.spec.heads),
        shares_(attention_variant(in.spec.variant).shares) {}

  at::Tensor run() {
    if (!c_.differentiated) whole_ = at::empty({in_.q.size(0), heads_, in_.spec.d_v}, in_.q.options());
    const auto most = [&](int64_t length, int64_t keys) {
      const int64_t bytes = heads_ * length * keys * in_.q.element_size();
      return std::max<int64_t>(1, tile_bytes(in_.q) / std::max<int64_t>(1, bytes));
    };
    const std::string sink_site = in_.name + ".hook_sink";
    if (in_.spec.sinks && c_.observer.wants(sink_site))
      sink_ = at::empty({in_.q.size(0), heads_}, in_.q.options());
    const auto each = [&](const SampleGroup& g) { g.without ? group_without(g) : group(g); };
    for_each_group(in_, most, each, needs_no_tiles() ? &v_ : nullptr);
    if (sink_.defined()) c_.observer.see(sink_site, sink_);
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
  void group(const SampleGroup& g) {
    const int64_t value_heads = v_.size(1) / in_.spec.d_v;
    const at::Tensor v = heads_first(samples_of(v_, g.key_begin, g.count, g.key_length, value_heads),
                                     heads_);  // [S*H, T', d_v]
    const bool whole = c_.differentiated || std::max(g.length, g.key_length) <= kWholePattern;
    const int64_t step = whole ? g.length : tile_rows(g);
    const bool show_scores = c_.observer.wants(in_.name + ".hook_attn_scores");
    for (int64_t row = 0; row < g.length; row += step) {
      const int64_t rows = std::min(step, g.length - row);
      at::Tensor scores, pattern = g.ready->pattern(0, g.count, row, rows, show_scores ? &scores : nullptr);
      const TilePlace place{g.first, row, g.length};
      if (scores.defined()) c_.observer.see(in_.name + ".hook_attn_scores", scores, place);
      c_.observer.see(in_.name + (shares_ ? ".hook_pattern" : ".hook_mixer"), pattern, place);
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

  bool needs_no_tiles() {
    if (c_.differentiated || c_.dropout != nullptr) return false;
    if (!c_.observer.wants(in_.name + ".hook_pattern") && !c_.observer.wants(in_.name + ".hook_attn_scores"))
      return true;
    reads_long_ = dynamic_cast<LongPatternObserver*>(&c_.observer);
    return reads_long_ != nullptr && reads_long_->reads_long(in_.name);
  }

  void group_without(const SampleGroup& g) {
    const LongStatistics found = g.without->run(
        reads_long_ != nullptr,
        whole_.narrow(0, g.begin, g.count * g.length).view({g.count, g.length, heads_, in_.spec.d_v}));
    if (sink_.defined())
      sink_.narrow(0, g.begin, g.count * g.length)
          .view({g.count, g.length, heads_})
          .copy_((1 - found.mass).transpose(1, 2));
    if (reads_long_ != nullptr)
      reads_long_->see_long(in_.name, Shown(*g.without, found), {g.first, 0, g.length});
  }

  void keep(const SampleGroup& g, int64_t row, int64_t rows, const at::Tensor& z) {
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
  bool shares_;
  LongPatternObserver* reads_long_ = nullptr;  // who wants to know of patterns that are not held
  at::Tensor whole_;                           // [N, H, d_v]; undefined where gradients are wanted
  std::vector<at::Tensor> parts_;              // its rows group by group, where they are
  at::Tensor sink_;                            // [N, H]: what a learned sink takes, where somebody wants it
};

}  // namespace

void for_each_group(const Attending& in, const std::function<int64_t(int64_t, int64_t)>& most,
                    const std::function<void(const SampleGroup&)>& each, const at::Tensor* long_values) {
  const AttentionVariant& variant = attention_variant(in.spec.variant);
  const bool own = &in.batch == &in.keys;
  if (!own && variant.own_tokens_only)
    throw Error(fmt::format("{} attention cannot look at another stream", variant.name));
  const BatchTensors &own_tensors = tensors_of(in.batch, in.q), &key_tensors = tensors_of(in.keys, in.q);
  for (int64_t s = 0; s < in.batch.count();) {
    const int64_t T = in.batch.length(s), K = in.keys.length(s);
    const int64_t count = std::min(equally_long(in.batch, in.keys, s), most(T, K));
    SampleGroup g{s,
                  count,
                  in.batch.offsets[static_cast<size_t>(s)],
                  T,
                  in.keys.offsets[static_cast<size_t>(s)],
                  K,
                  nullptr,
                  nullptr};
    const at::Tensor q = samples_of(in.q, g.begin, count, T, in.spec.heads);
    const at::Tensor k = samples_of(in.k, g.key_begin, count, K, in.spec.kv_heads);
    const at::Tensor positions = rows_of(own_tensors.positions, g.begin, count, T);
    const at::Tensor key_positions = rows_of(key_tensors.positions, g.key_begin, count, K);
    const at::Tensor types = rows_of(own_tensors.types, g.begin, count, T);
    const at::Tensor gates =
        in.gates.defined() ? samples_of(in.gates, g.key_begin, count, K, in.spec.kv_heads) : at::Tensor();
    const AttentionInput input{in.spec, in.weights, in.name, q, k, positions, key_positions, types, &gates};
    if (long_values != nullptr && T > kWholePattern)
      g.without = LongSoftmax::prepare(
          input, samples_of(*long_values, g.key_begin, count, K, long_values->size(1) / in.spec.d_v));
    if (!g.without) g.ready = variant.prepare(input);
    each(g);
    s += count;
  }
}

at::Tensor attend(const Attending& in, const at::Tensor& v, const BlockContext& context) {
  return Attention(in, v, context).run();
}

}  // namespace rankscope
