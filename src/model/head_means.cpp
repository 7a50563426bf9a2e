#include "model/head_means.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <utility>

#include "attention/variant.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "parts/program.h"

namespace rankscope {
namespace {

/// Adds up what the heads of one block carry.
class Carried : public BlockObserver {
 public:
  bool wants(std::string_view site) const override { return site == "attn.hook_z" || site == "attn.hook_v"; }
  void see(std::string_view site, const at::Tensor& z, const TilePlace&) override {
    if (site == "attn.hook_v") values_ = z;
    if (site != "attn.hook_z") return;
    const at::Tensor here = z.to(at::kDouble).sum(0);
    sum_ = sum_.defined() ? sum_ + here : here;
    tokens_ += z.size(0);
  }
  at::Tensor mean() const { return (sum_ / static_cast<double>(tokens_)).cpu(); }  // [H, d_v]
  at::Tensor take_values() { return std::exchange(values_, {}); }  // of the last batch, [N, KV, d_v]

 private:
  at::Tensor sum_, values_;
  int64_t tokens_ = 0;
};

std::vector<std::vector<double>> rows_of(const at::Tensor& t) {
  const at::Tensor here = t.to(at::kCPU, at::kDouble).contiguous();
  std::vector<std::vector<double>> out;
  for (int64_t h = 0; h < here.size(0); ++h) {
    const double* row = here.data_ptr<double>() + h * here.size(1);
    out.emplace_back(row, row + here.size(1));
  }
  return out;
}

void add_able(std::vector<std::vector<double>>& able, const at::Tensor& values, const at::Tensor& x,
              const at::Tensor& grams, const Batch& batch) {
  const int64_t heads = grams.size(0), d_v = grams.size(1), groups = values.numel() / (values.size(0) * d_v);
  able.resize(static_cast<size_t>(heads));
  for (int64_t s = 0; s < batch.count(); ++s) {
    const int64_t first = batch.offsets[static_cast<size_t>(s)], n = batch.length(s);
    if (n < 2) continue;
    const at::Tensor v = values.narrow(0, first, n)
                             .to(at::kDouble)
                             .reshape({n, groups, 1, d_v})
                             .expand({n, groups, heads / groups, d_v})
                             .reshape({n, heads, d_v})
                             .transpose(0, 1);  // [H, n, d_v]
    // Neighbours, not distances from the mean: one token that is far from all others moves the mean of them
    // all.
    const at::Tensor c = v.narrow(1, 1, n - 1) - v.narrow(1, 0, n - 1),
                     sizes = (c.matmul(grams) * c).sum(2) / 2;  // [H, n - 1]
    const at::Tensor tokens = x.narrow(0, first, n).to(at::kDouble);
    const at::Tensor beside = (tokens - tokens.mean(0)).square().sum().clamp_min(1e-300);
    const at::Tensor share = (std::get<0>(sizes.median(1)).clamp_min(0) * (static_cast<double>(n) / beside))
                                 .sqrt()
                                 .cpu()
                                 .contiguous();
    for (int64_t h = 0; h < heads; ++h) able[static_cast<size_t>(h)].push_back(share.data_ptr<double>()[h]);
  }
}

}  // namespace

at::Tensor carried_by_biases(const BranchSpec& branch, const Weights& weights) {
  const AttentionSpec& a = *branch.attention();
  at::Tensor v = at::zeros({a.kv_heads * a.d_v}, at::kDouble);
  if (attention_variant(a.variant).row_stochastic && !a.sinks) {
    if (const at::Tensor& b = weights.get_or_none(branch.name + ".b_V"); b.defined())
      v += b.to(at::kCPU, at::kDouble);
    const at::Tensor& shift =
        branch.before.acts() ? weights.get_or_none(branch.norm_name + ".b") : at::Tensor();
    if (shift.defined())
      v += at::mv(weights.get(branch.name + ".W_V").to(at::kCPU, at::kDouble),
                  shift.to(at::kCPU, at::kDouble));
  }
  return v.view({a.kv_heads, 1, a.d_v})
      .expand({a.kv_heads, a.heads / a.kv_heads, a.d_v})
      .reshape({a.heads, a.d_v});
}

at::Tensor output_grams(const Weights& weights, const AttentionSpec& a) {
  const at::Tensor W_O = weights.get("attn.W_O").to(at::kDouble) / static_cast<double>(a.modules);
  const at::Tensor by_head = W_O.view({W_O.size(0), a.heads, a.d_v}).permute({1, 0, 2});  // [H, d, d_v]
  return by_head.transpose(1, 2).matmul(by_head);
}

std::vector<HeadMeans> head_means(WeightSource& source, const std::vector<Batch>& batches) {
  const c10::NoGradGuard no_grad;
  const ModelSpec& spec = source.spec();
  std::vector<at::Tensor> x;
  {
    const Weights weights = source.load("embed");
    for (const Batch& b : batches) x.push_back(embed(b, spec, weights, source));
  }
  std::vector<HeadMeans> out;
  for (const BlockSpec& block : spec.blocks) {
    const Weights weights = source.load(fmt::format("blocks.{}", block.weights));
    Carried carried;
    const BranchSpec* branch = block.attention_branch();
    const bool heads = branch != nullptr && branch->name == "attn" && branch->attention()->value_map &&
                       program_of(*branch, spec.width).writes_heads();
    const at::Tensor grams = heads ? output_grams(weights, *branch->attention()) : at::Tensor();
    std::vector<std::vector<double>> able;
    for (size_t b = 0; b < batches.size(); ++b) {
      const at::Tensor before = x[b];
      x[b] = run_block(before, block, weights, batches[b], carried);
      const at::Tensor values = carried.take_values();
      if (heads && values.defined()) add_able(able, values, before, grams, batches[b]);
    }
    out.emplace_back();
    if (heads)
      out.back() = {rows_of(carried.mean()), rows_of(carried_by_biases(*branch, weights)), std::move(able)};
  }
  return out;
}

ModelSpec with_fixed_head(ModelSpec spec, int64_t layer, int64_t head, const std::vector<double>& values) {
  AttentionSpec& a = spec.blocks[static_cast<size_t>(layer)].attention();
  a.heads_fixed.push_back(head);
  a.fixed_values.insert(a.fixed_values.end(), values.begin(), values.end());
  return spec;
}

}  // namespace rankscope
