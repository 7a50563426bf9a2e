#include "operator/rerun.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/philox.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "spec/head_groups.h"
#include "tensors/norm.h"
#include "theory/path_counts.h"

namespace rankscope {
namespace {

constexpr uint32_t kPathStream = 0x70617468;  // "path"

// The block with one head alone, and its weights.
struct OneHead {
  BlockSpec block;
  Weights weights;
};

OneHead only_head(const BlockSpec& block, const Weights& weights, int64_t width, int64_t head) {
  OneHead out{block, weights.shallow_copy()};
  BranchSpec& branch = *out.block.attention_branch();
  AttentionSpec& a = *branch.attention();
  const int64_t kv = head / (a.heads / a.kv_heads);
  if (a.qk_norm.acts() && a.qk_norm_span == NormSpan::all)
    throw Error("its queries and keys are normed over all heads together, so that no head runs alone")
        .hint("--semantics frozen");
  if (!a.alibi.empty()) a.alibi = {a.alibi[static_cast<size_t>(head)]};
  for (const Parameter& p : program_of(branch, width).parameters) {
    if (p.head_axis < 0 || !weights.has(p.name)) continue;
    const at::Tensor& all = weights.get(p.name);
    const int64_t size = all.size(p.head_axis) / (p.per_kv_head ? a.kv_heads : a.heads);
    out.weights.set(p.name, all.narrow(p.head_axis, (p.per_kv_head ? kv : head) * size, size).contiguous());
  }
  const bool off = std::count(a.heads_off.begin(), a.heads_off.end(), head) > 0;
  a.variant = variant_of_head(a, head);
  a.heads = a.kv_heads = 1;
  a.heads_off.clear();
  if (off) a.heads_off.push_back(0);
  return out;
}

// A norm that keeps its kind and loses its gains.
void drop_gains(Weights& weights, const std::string& name) {
  const std::string w = name + ".w", b = name + ".b";
  if (weights.has(w)) weights.set(w, at::ones_like(weights.get(w)));
  if (weights.has(b)) weights.set(b, at::zeros_like(weights.get(b)));
}

void enumerate(int64_t layers, int64_t heads, int64_t length, Path& path, std::vector<Path>& out) {
  const auto done = static_cast<int64_t>(path.size());
  if (done == layers) {
    out.push_back(path);
    return;
  }
  const auto go = [&](int choice, int64_t left) {
    path.push_back(choice);
    enumerate(layers, heads, left, path, out);
    path.pop_back();
  };
  if (layers - done > length) go(-1, length);
  for (int h = 0; length > 0 && h < static_cast<int>(heads); ++h) go(h, length - 1);
}

}  // namespace

Semantics semantics_of(std::string_view name) {
  if (name == "frozen") return Semantics::frozen;
  if (name == "rerun") return Semantics::rerun;
  if (name == "subpaths") return Semantics::subpaths;
  throw unknown_name("semantics", name, {"frozen", "rerun", "subpaths"}, "rankscope paths --help");
}

std::vector<Path> sample_paths(int64_t layers, int64_t heads, int64_t length, int64_t count, uint64_t seed,
                               uint32_t draw) {
  std::vector<Path> out;
  if (path_count(layers, heads, length, count + 1) <= count) {
    Path path;
    enumerate(layers, heads, length, path, out);
    return out;
  }
  const Philox random{seed, kPathStream + static_cast<uint32_t>(length), draw};
  std::set<Path> seen;
  for (uint64_t index = 0; static_cast<int64_t>(out.size()) < count;) {
    std::vector<size_t> order(static_cast<size_t>(layers));
    std::iota(order.begin(), order.end(), size_t{0});
    Path path(static_cast<size_t>(layers), -1);
    for (size_t i = 0; i < static_cast<size_t>(length); ++i) {  // the first steps of a Fisher-Yates shuffle
      std::swap(order[i], order[i + random.below(order.size() - i, index++)]);
      path[order[i]] = static_cast<int>(random.below(static_cast<uint64_t>(heads), index++));
    }
    if (seen.insert(path).second) out.push_back(path);
  }
  return out;
}

struct PathRunner::Impl {
  ModelSpec spec;
  const Batch& batch;
  at::Tensor start;
  std::vector<std::vector<OneHead>> heads;  // by layer and head
  Weights final_norm;

  at::Tensor through(const at::Tensor& x, size_t layer, size_t head, Semantics semantics) const;
  at::Tensor normalised(const at::Tensor& total) const;
  void add_from(const at::Tensor& x, size_t layer, size_t length, Semantics semantics,
                std::vector<at::Tensor>& totals) const;
};

PathRunner::PathRunner(const ModelSpec& spec, WeightSource& source, const Batch& batch)
    : impl_(new Impl{spec, batch, {}, {}, {}}) {
  const c10::NoGradGuard no_grad;
  impl_->start = embed(batch, spec, source.load("embed"), source);
  for (const BlockSpec& block : spec.blocks) {
    const Weights weights = source.load(fmt::format("blocks.{}", block.weights));
    impl_->heads.emplace_back();
    for (int64_t h = 0; h < block.attention().heads; ++h)
      impl_->heads.back().push_back(only_head(block, weights, spec.width, h));
  }
  if (spec.final_norm.there()) impl_->final_norm = source.load("ln_final");
}

PathRunner::~PathRunner() = default;

at::Tensor PathRunner::run(const Path& path, Semantics semantics) const {
  const c10::NoGradGuard no_grad;
  at::Tensor x = impl_->start;
  for (size_t l = 0; l < path.size(); ++l)
    if (path[l] >= 0) x = impl_->through(x, l, static_cast<size_t>(path[l]), semantics);
  return x;
}

// One used layer.
at::Tensor PathRunner::Impl::through(const at::Tensor& x, size_t layer, size_t head,
                                     Semantics semantics) const {
  const OneHead& one = heads[layer][head];
  BlockSpec block = one.block;
  Weights weights = one.weights.shallow_copy();
  BranchSpec& attention = *block.attention_branch();
  attention.skip = semantics == Semantics::subpaths;
  if (semantics == Semantics::rerun && attention.behind.there()) drop_gains(weights, attention.norm_name);
  BlockObserver nobody;
  return run_block(x, block, weights, batch, nobody);
}

// Every way on from layer `layer`, for a path of `length` so far.
void PathRunner::Impl::add_from(const at::Tensor& x, size_t layer, size_t length, Semantics semantics,
                                std::vector<at::Tensor>& totals) const {
  if (layer == heads.size()) {
    totals[length] += x;
    return;
  }
  add_from(x, layer + 1, length, semantics, totals);
  for (size_t h = 0; h < heads[layer].size(); ++h)
    add_from(through(x, layer, h, semantics), layer + 1, length + 1, semantics, totals);
}

std::vector<at::Tensor> PathRunner::sum_all(Semantics semantics) const {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> totals(impl_->heads.size() + 1);
  for (at::Tensor& total : totals) total = at::zeros_like(impl_->start);
  impl_->add_from(impl_->start, 0, 0, semantics, totals);
  for (at::Tensor& total : totals) total = impl_->normalised(total);
  return totals;
}

at::Tensor PathRunner::sum(const std::vector<Path>& paths, Semantics semantics) const {
  at::Tensor total = at::zeros_like(impl_->start);
  for (const Path& path : paths) total += run(path, semantics);
  return impl_->normalised(total);
}

at::Tensor PathRunner::Impl::normalised(const at::Tensor& total) const {
  if (spec.final_norm.acts()) return apply_norm(total, spec.final_norm, final_norm, "");
  const BranchSpec& attention = *spec.blocks.front().attention_branch();
  const NormSpec norm = attention.before.there() ? attention.before : attention.behind;
  if (!norm.acts()) return total;
  Weights plain;
  plain.set("w", at::ones({total.size(1)}, total.options()));
  plain.set("b", at::zeros({total.size(1)}, total.options()));
  return apply_norm(total, norm, plain, "");
}

}  // namespace rankscope
