#include "importance/evaluator.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "importance/kept.h"
#include "model/embed_and_unembed.h"
#include "model/kv_latent.h"
#include "model/truncate.h"
#include "parts/parameters.h"
#include "pass/readout.h"
#include "tensors/device.h"
#include "tensors/norm.h"

namespace rankscope {
namespace {

constexpr int64_t kGroupOnCpu = int64_t{1} << 30;
constexpr uint32_t kResample = 4;  // the stream of random numbers, beside those of pass/

// Networks that run one block alike go through it side by side, up to so many tokens: that fills a GPU, and
// on a CPU nothing is gained by it.
int64_t tokens_side_by_side(const at::Tensor& x) { return x.is_cuda() ? 32768 : 0; }

Batch repeated(const Batch& batch, int64_t times) {
  Batch out;
  out.has_types = batch.has_types;
  out.offsets.push_back(0);
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (int64_t i = 0; i < times; ++i) {
    append(out.ids, batch.ids);
    append(out.types, batch.types);
    append(out.positions, batch.positions);
    append(out.content, batch.content);
    append(out.samples, batch.samples);
    for (int64_t s = 0; s < batch.count(); ++s) out.offsets.push_back(out.offsets.back() + batch.length(s));
  }
  return out;
}

class SeenHeads : public BlockObserver {
 public:
  bool wants(std::string_view site) const override { return site == "attn.hook_z"; }
  void see(std::string_view site, const at::Tensor& z, const TilePlace&) override {
    if (site == "attn.hook_z") z_ = z;
  }
  const at::Tensor& z() const { return z_; }

 private:
  at::Tensor z_;
};

}  // namespace

Resume resume_points(const BlockPlan& plan, const BlockSpec& block) {
  Resume r;
  const BranchSpec *attention = block.attention_branch(), *mlp = block.mlp_branch();
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const BranchSpec* branch = &block.branches[static_cast<size_t>(step.branch)];
    if (branch == mlp && step.kind == Step::Kind::read) r.before_mlp = i;
    if (branch != attention || step.kind != Step::Kind::run) continue;
    const Program& program = plan.programs[static_cast<size_t>(step.branch)];
    if (branch->name != "attn" || !program.writes_heads()) continue;
    r.attended = i + 1;
    r.scale = program.operations.back().scale;
  }
  return r;
}

Evaluator::Impl::Impl(const Job& j) : job(j), spec(j.source.spec()) {
  batches = make_batches(job.questions.samples, spec, job.batch_size);
  const bool head = spec.output.kind != HeadKind::none;
  tokens_asked.assign(job.questions.samples.size(), 0);
  for (const Batch& batch : batches) {
    AskedRows rows;
    std::vector<int64_t> ids(static_cast<size_t>(batch.tokens()), -1);
    AnswerRows answers;
    if (job.questions.kind != LossKind::none) answers = rows_of(batch, job.questions.answers);
    for (size_t i = 0; i < answers.rows.size(); ++i)
      ids[static_cast<size_t>(answers.rows[i])] = answers.ids[i];
    for (size_t s = 0; s + 1 < answers.offsets.size(); ++s)
      tokens_asked[static_cast<size_t>(batch.samples[s])] = answers.offsets[s + 1] - answers.offsets[s];
    if (job.questions.kind == LossKind::masked) {  // only what was hidden is predicted
      rows.rows = at::tensor(answers.rows, at::kLong);
      rows.ids = at::tensor(answers.ids, at::kLong);
      rows.offsets = answers.offsets;
    } else {
      rows.rows = at::arange(batch.tokens(), at::kLong);
      rows.ids = head && job.questions.kind != LossKind::none ? at::tensor(ids, at::kLong) : at::Tensor();
      rows.offsets = batch.offsets;
    }
    asked.push_back(std::move(rows));
    for (const BlockSpec& block : spec.blocks) unit += block_cost(block, batch);
  }
  run_full();
}

Weights Evaluator::Impl::block_weights(int64_t layer) {
  return job.source.load(fmt::format("blocks.{}", spec.blocks[static_cast<size_t>(layer)].weights));
}

double Evaluator::Impl::block_cost(const BlockSpec& block, const Batch& batch) const {
  double cost = 0;
  for (int64_t s = 0; s < batch.count(); ++s) cost += block_flops(spec, block, batch.length(s));
  return cost;
}

double Evaluator::Impl::readout_cost(size_t batch) const {
  return readout_flops(spec) * static_cast<double>(asked[batch].rows.size(0));
}

void Evaluator::Impl::run_full() {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> x;
  {
    const Weights weights = job.source.load("embed");
    for (const Batch& b : batches) x.push_back(embed(b, spec, weights, job.source));
  }
  for (AskedRows& rows : asked) {
    rows.rows = rows.rows.to(x.front().device());
    if (rows.ids.defined()) rows.ids = rows.ids.to(x.front().device());
  }
  for (int64_t l = 0; l < spec.depth(); ++l) {
    const BlockSpec& block = spec.blocks[static_cast<size_t>(l)];
    const Weights weights = block_weights(l);
    const BlockPlan plan(block, spec.width);
    const Resume at = resume_points(plan, block);
    kept.emplace_back();
    for (size_t b = 0; b < batches.size(); ++b) {
      SeenHeads heads;
      const BlockContext context{plan, weights, batches[b], heads};
      KeptBlock k{x[b], {}, {}, {}};
      BlockState state = block_start(x[b]);
      for (size_t i = 0; i < plan.steps.size(); ++i) {
        if (job.parts && i == at.before_mlp && block.mlp_branch() != nullptr) k.before_mlp = state;
        run_step(plan.steps[i], context, state, true);
        if (job.parts && i + 1 == at.attended) {
          k.attended = state;
          k.z = heads.z();
        }
      }
      x[b] = state.stream;
      kept.back().push_back(std::move(k));
      flops += block_cost(block, batches[b]);
    }
    if (job.progress) job.progress(l + 1, spec.depth(), "the full network");
  }
  last = x;
  if (spec.final_norm.there()) final_norm = job.source.load("ln_final");
  if (spec.output.kind != HeadKind::none) unembed = job.source.load("unembed");
  full.kl.assign(job.questions.samples.size(), 0.0);
  if (job.questions.kind != LossKind::none) full.loss.assign(job.questions.samples.size(), 0.0);
  for (size_t b = 0; b < batches.size(); ++b) {
    read.push_back(readable(ended(x[b], b)));
    flops += readout_cost(b);
    if (job.questions.kind == LossKind::none) continue;
    const RowOutputs out = read_rows(job.source, {read[b]}, asked[b].ids).front();
    file(out.nll, out.kl, b, full);
  }
}

at::Tensor Evaluator::Impl::ended(const at::Tensor& x, size_t batch) const {
  return apply_norm(x, spec.final_norm, final_norm, "").index_select(0, asked[batch].rows);
}

at::Tensor Evaluator::Impl::readable(const at::Tensor& ended) const {
  return spec.output.kind == HeadKind::none ? ended : before_vocabulary(ended, spec, unembed);
}

void Evaluator::Impl::file(const at::Tensor& nll, const at::Tensor& kl, size_t batch, Judged& out) const {
  const AskedRows& rows = asked[batch];
  const at::Tensor kl_here = kl.cpu(), nll_here = nll.defined() ? nll.cpu() : nll;
  const at::Tensor ids = rows.ids.defined() ? rows.ids.cpu() : rows.ids;
  for (size_t s = 0; s < batches[batch].samples.size(); ++s) {
    const auto sample = static_cast<size_t>(batches[batch].samples[s]);
    const int64_t first = rows.offsets[s], count = rows.offsets[s + 1] - first;
    if (count == 0) continue;
    out.kl[sample] = kl_here.narrow(0, first, count).mean().item<double>();
    if (!nll_here.defined() || out.loss.empty() || tokens_asked[sample] == 0) continue;
    const at::Tensor counts = (ids.narrow(0, first, count) >= 0).to(at::kDouble);
    out.loss[sample] = ((nll_here.narrow(0, first, count) * counts).sum() / counts.sum()).item<double>();
  }
}

namespace {

/// Relative distances of last hidden states, by sample.
void file_distances(const at::Tensor& full, const at::Tensor& other, const Batch& batch, Judged& out) {
  const at::Tensor x = full.to(at::kDouble), difference = other.to(at::kDouble) - x;
  for (size_t s = 0; s < batch.samples.size(); ++s) {
    const auto part = [&](const at::Tensor& t) {
      return t.narrow(0, batch.offsets[s], batch.length(static_cast<int64_t>(s))).norm();
    };
    out.kl[static_cast<size_t>(batch.samples[s])] =
        (part(difference) / part(x).clamp_min(1e-300)).item<double>();
  }
}

}  // namespace

std::vector<Judged> Evaluator::Impl::judge(const std::vector<std::vector<at::Tensor>>& by_network) {
  std::vector<Judged> out(by_network.size(), full);
  for (size_t b = 0; b < batches.size(); ++b) {
    std::vector<at::Tensor> states{read[b]};
    for (const std::vector<at::Tensor>& network : by_network) {
      states.push_back(readable(network[b]));
      flops += readout_cost(b);
    }
    if (spec.output.kind == HeadKind::none) {
      for (size_t i = 0; i < out.size(); ++i) file_distances(states[0], states[i + 1], batches[b], out[i]);
      continue;
    }
    const std::vector<RowOutputs> rows = read_rows(job.source, states, asked[b].ids);
    for (size_t i = 0; i < out.size(); ++i) file(rows[i + 1].nll, rows[i + 1].kl, b, out[i]);
  }
  return out;
}

namespace {

// One group of networks on its way through the blocks.
class Group {
 public:
  Group(Evaluator::Impl& e, const std::vector<Variation>& all, std::vector<size_t> members)
      : e_(e), all_(all), members_(std::move(members)) {}

  /// What each of the networks ends in, in the order of the members, by batch.
  std::vector<std::vector<at::Tensor>> run() {
    int64_t first = e_.spec.depth();
    for (const size_t v : members_) first = std::min(first, all_[v].first);
    for (int64_t l = first; l < e_.spec.depth(); ++l) {
      const Weights weights = e_.block_weights(l);
      advance(l, weights);
      enter(l, weights);
      if (e_.job.progress)
        e_.job.progress(l + 1, e_.spec.depth(), fmt::format("{} networks beside the full one", live_.size()));
    }
    std::vector<std::vector<at::Tensor>> out(members_.size());
    for (Live& live : live_) {
      auto& to = out[static_cast<size_t>(std::find(members_.begin(), members_.end(), live.variation) -
                                         members_.begin())];
      for (size_t b = 0; b < e_.batches.size(); ++b) {
        to.push_back(e_.ended(live.x[b], b));
        live.x[b].reset();
      }
    }
    return out;
  }

 private:
  struct Live {
    size_t variation;
    std::vector<at::Tensor> x;  // by batch
  };

  const BlockSpec& block(int64_t l) const { return e_.spec.blocks[static_cast<size_t>(l)]; }

  at::Tensor plain(int64_t l, const Weights& weights, const at::Tensor& x, const Batch& batch) {
    BlockObserver nobody;
    e_.flops += e_.block_cost(block(l), batch);
    return run_block(x, block(l), weights, batch, nobody);
  }

  at::Tensor edited(const BlockEdit& edit, const Weights& weights, const at::Tensor& x, const Batch& batch) {
    BlockObserver nobody;
    e_.flops += e_.block_cost(edit.spec, batch);
    return run_block(x, edit.spec, weights, batch, nobody);
  }

  void advance(int64_t l, const Weights& weights) {
    std::vector<Live*> alike;
    for (Live& live : live_) {
      const auto edit = all_[live.variation].edits.find(l);
      if (edit == all_[live.variation].edits.end()) {
        alike.push_back(&live);
        continue;
      }
      BlockEdit own = edit->second;
      const Weights changed = edited_weights(own, weights);
      for (size_t b = 0; b < e_.batches.size(); ++b)
        live.x[b] = edited(own, changed, live.x[b], e_.batches[b]);
    }
    for (size_t b = 0; b < e_.batches.size(); ++b) side_by_side(l, weights, alike, b);
  }

  void side_by_side(int64_t l, const Weights& weights, const std::vector<Live*>& alike, size_t b) {
    if (alike.empty()) return;
    const int64_t most = std::max<int64_t>(
        1, tokens_side_by_side(alike.front()->x[b]) / std::max<int64_t>(1, e_.batches[b].tokens()));
    for (size_t i = 0; i < alike.size(); i += static_cast<size_t>(most)) {
      const size_t count = std::min(alike.size() - i, static_cast<size_t>(most));
      if (count == 1) {
        alike[i]->x[b] = plain(l, weights, alike[i]->x[b], e_.batches[b]);
        continue;
      }
      std::vector<at::Tensor> parts;
      for (size_t k = 0; k < count; ++k) parts.push_back(alike[i + k]->x[b]);
      const at::Tensor y =
          plain(l, weights, at::cat(parts), repeated(e_.batches[b], static_cast<int64_t>(count)));
      const std::vector<at::Tensor> out = y.chunk(static_cast<int64_t>(count));
      for (size_t k = 0; k < count; ++k) alike[i + k]->x[b] = out[k];
    }
  }

  // Networks that differ from here on.
  void enter(int64_t l, const Weights& weights) {
    for (const size_t v : members_) {
      const Variation& variation = all_[v];
      if (variation.first != l) continue;
      Live live{v, {}};
      if (variation.unit) {
        for (size_t b = 0; b < e_.batches.size(); ++b) live.x.push_back(without(variation, l, weights, b));
      } else {
        const auto edit = variation.edits.find(l);
        BlockEdit own = edit != variation.edits.end() ? edit->second : BlockEdit{block(l), 0};
        const Weights changed = edited_weights(own, weights);
        for (size_t b = 0; b < e_.batches.size(); ++b)
          live.x.push_back(edited(own, changed, e_.kept[static_cast<size_t>(l)][b].x, e_.batches[b]));
      }
      live_.push_back(std::move(live));
    }
  }

  // What the block leaves without one of its parts.
  at::Tensor without(const Variation& v, int64_t l, const Weights& weights, size_t b) {
    const KeptBlock& k = e_.kept[static_cast<size_t>(l)][b];
    const Unit& unit = *v.unit;
    if (unit.kind == UnitKind::layer) return k.x;
    BlockSpec own = block(l);
    if (unit.kind == UnitKind::expert) own.mlp_branch()->mlp()->experts_off = {unit.index};
    const bool subtract = unit.kind == UnitKind::head && k.attended.value.defined();
    if (unit.kind == UnitKind::head && !subtract) {
      own.attention().heads_off = {unit.index};
      BlockObserver nobody;
      e_.flops += e_.block_cost(own, e_.batches[b]);
      return run_block(k.x, own, weights, e_.batches[b], nobody);
    }
    const BlockPlan plan(own, e_.spec.width);
    const Resume at = resume_points(plan, own);
    BlockObserver nobody;
    const BlockContext context{plan, weights, e_.batches[b], nobody};
    BlockState state = subtract ? k.attended : k.before_mlp;
    size_t next = subtract ? at.attended : at.before_mlp;
    if (subtract) state.value = state.value - lost(v, l, weights, b, at.scale);
    if (unit.kind == UnitKind::mlp) next = silence(v, plan, context, state, next, b);
    BlockSpec rest = own;
    rest.branches.erase(rest.branches.begin(),
                        rest.branches.begin() + (next < plan.steps.size() ? plan.steps[next].branch : 0) +
                            (next < plan.steps.size() && plan.steps[next].kind != Step::Kind::read ? 1 : 0));
    e_.flops += e_.block_cost(rest, e_.batches[b]);
    for (; next < plan.steps.size(); ++next) run_step(plan.steps[next], context, state, true);
    return state.stream;
  }

  // What the layer's output loses with the head: (z_h - r_h) W_O, r_h what is put in its place.
  at::Tensor lost(const Variation& v, int64_t l, const Weights& weights, size_t b, double scale) {
    const AttentionSpec& a = block(l).attention();
    const at::Tensor z = e_.kept[static_cast<size_t>(l)][b].z.select(1, v.unit->index);  // [N, d_v]
    const at::Tensor W = weights.get("attn.W_O").narrow(1, v.unit->index * a.d_v, a.d_v);
    at::Tensor gone = z;
    if (v.replacement == Replacement::mean) gone = z - mean_of(l, v.unit->index);
    if (v.replacement == Replacement::resample) gone = z - z.index_select(0, order(b, z));
    e_.flops += 2.0 * static_cast<double>(z.numel() * W.size(0));
    const at::Tensor out = at::linear(gone, W);
    return scale == 1.0 ? out : out * scale;
  }

  at::Tensor mean_of(int64_t l, int64_t head) {
    at::Tensor sum;
    int64_t tokens = 0;
    for (const KeptBlock& k : e_.kept[static_cast<size_t>(l)]) {
      const at::Tensor here = k.z.select(1, head).to(at::kDouble).sum(0);
      sum = sum.defined() ? sum + here : here;
      tokens += k.z.size(0);
    }
    return (sum / static_cast<double>(tokens)).to(e_.kept[static_cast<size_t>(l)].front().z.scalar_type());
  }

  // Every token of the batch once, in a random order.
  at::Tensor order(size_t b, const at::Tensor& like) const {
    const Philox random{e_.job.seed, kResample, static_cast<uint32_t>(b)};
    std::vector<int64_t> all(static_cast<size_t>(e_.batches[b].tokens()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i, i)]);
    return at::tensor(all, at::kLong).to(like.device());
  }

  // The MLP's branch up to its join, which is the next step: what it adds to the stream is replaced.
  size_t silence(const Variation& v, const BlockPlan& plan, const BlockContext& context, BlockState& state,
                 size_t next, size_t b) {
    const Replacement replacement = v.replacement;
    run_step(plan.steps[next++], context, state, true);
    if (replacement == Replacement::zero) {
      state.value = at::zeros_like(state.stream);
      return next + 2;
    }
    for (int i = 0; i < 2; ++i) run_step(plan.steps[next++], context, state, true);
    BlockSpec ran;
    ran.branches = {*block(v.unit->layer).mlp_branch()};
    e_.flops += e_.block_cost(ran, e_.batches[b]);
    const at::Tensor mean = state.value.to(at::kDouble).mean(0, true).to(state.value.scalar_type());
    state.value = replacement == Replacement::mean ? mean.expand_as(state.value).contiguous()
                                                   : state.value.index_select(0, order(b, state.value));
    return next;
  }

  Evaluator::Impl& e_;
  const std::vector<Variation>& all_;
  std::vector<size_t> members_;
  std::vector<Live> live_;
};

}  // namespace

Weights edited_weights(BlockEdit& edit, const Weights& weights) {
  Weights out = edit.kv_rank > 0 ? with_kv_latent(weights, edit.spec, edit.kv_rank) : weights.shallow_copy();
  return is_truncated(edit.spec) ? truncated(out, edit.spec) : std::move(out);
}

Evaluator::Evaluator(const Job& job) : impl_(std::make_unique<Impl>(job)) {}
Evaluator::~Evaluator() = default;
const ModelSpec& Evaluator::spec() const { return impl_->spec; }
int64_t Evaluator::samples() const { return static_cast<int64_t>(impl_->tokens_asked.size()); }
const std::vector<int64_t>& Evaluator::asked() const { return impl_->tokens_asked; }
const Judged& Evaluator::full() const { return impl_->full; }
double Evaluator::passes() const { return impl_->flops / impl_->unit; }
bool Evaluator::writes_heads(int64_t layer) const {
  return impl_->kept[static_cast<size_t>(layer)].front().attended.value.defined();
}

namespace {

/// Runs the networks in groups as large as memory allows; `take` gets the numbers of each group's networks
/// and what they end in.
template <class Take>
void each_group(Evaluator::Impl& e, const std::vector<Variation>& variations, Take take) {
  const c10::NoGradGuard no_grad;
  std::vector<size_t> sorted(variations.size());
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](size_t a, size_t b) { return variations[a].first < variations[b].first; });
  int64_t tokens = 0;
  for (const Batch& b : e.batches) tokens += b.tokens();
  const int64_t each = 2 * tokens * e.spec.width * e.last.front().element_size();
  const int64_t bytes = e.job.group_bytes > 0      ? e.job.group_bytes
                        : e.last.front().is_cuda() ? device_memory(e.job.device).free / 4
                                                   : kGroupOnCpu;
  auto most = static_cast<size_t>(std::max<int64_t>(1, bytes / std::max<int64_t>(1, each)));
  for (size_t i = 0; i < sorted.size();) {
    const std::vector<size_t> members(
        sorted.begin() + static_cast<std::ptrdiff_t>(i),
        sorted.begin() + static_cast<std::ptrdiff_t>(std::min(sorted.size(), i + most)));
    const double before = e.flops;
    try {
      take(members, Group(e, variations, members).run());
      i += members.size();
    } catch (const c10::OutOfMemoryError&) {  // of a GPU: a smaller group, until one alone does not fit
      if (members.size() == 1) throw;
      e.flops = before;
      most = members.size() / 2;
      release_device_memory();
    }
  }
}

}  // namespace

std::vector<Judged> Evaluator::run(const std::vector<Variation>& variations) {
  std::vector<Judged> out(variations.size());
  each_group(*impl_, variations, [&](const auto& members, const auto& ends) {
    std::vector<Judged> judged = impl_->judge(ends);
    for (size_t k = 0; k < members.size(); ++k) out[members[k]] = std::move(judged[k]);
  });
  return out;
}

std::vector<std::vector<double>> Evaluator::beyond_added(
    const std::vector<Variation>& alone, const std::vector<Variation>& both,
    const std::vector<std::pair<size_t, size_t>>& pairs) {
  using States = std::vector<at::Tensor>;  // by batch
  std::vector<States> ends(alone.size());
  each_group(*impl_, alone, [&](const auto& members, const auto& states) {
    for (size_t k = 0; k < members.size(); ++k) ends[members[k]] = states[k];
  });
  States full;
  for (size_t b = 0; b < impl_->batches.size(); ++b) full.push_back(impl_->ended(impl_->last[b], b));
  std::vector<std::vector<double>> out(pairs.size());
  each_group(*impl_, both, [&](const auto& members, const auto& states) {
    for (size_t k = 0; k < members.size(); ++k) {
      const auto& [i, j] = pairs[members[k]];
      States added;
      for (size_t b = 0; b < full.size(); ++b) added.push_back(ends[i][b] + ends[j][b] - full[b]);
      const std::vector<Judged> judged = impl_->judge({states[k], added});
      std::vector<double>& more = out[members[k]];
      for (size_t s = 0; s < judged[0].kl.size(); ++s) more.push_back(judged[0].kl[s] - judged[1].kl[s]);
    }
  });
  return out;
}

double Evaluator::bound(const std::vector<Unit>& units) const {
  const ModelSpec& spec = impl_->spec;
  // One token has no other to look at: what is left are the products with the weights.
  std::vector<double> block, rest;
  double all = 0;
  for (const BlockSpec& b : spec.blocks) {
    block.push_back(block_flops(spec, b, 1));
    BlockSpec without = b;
    std::erase_if(without.branches, [](const BranchSpec& branch) { return branch.attention() != nullptr; });
    rest.push_back(block_flops(spec, without, 1));
    all += block.back();
  }
  const double logits = readout_flops(spec);
  double total = all + logits;
  for (const Unit& u : units) {
    const auto l = static_cast<size_t>(u.layer);
    const bool own = u.kind == UnitKind::head || u.kind == UnitKind::expert;
    total += logits + (own ? (writes_heads(u.layer) || u.kind == UnitKind::expert ? rest[l] : block[l]) : 0);
    for (size_t k = l + 1; k < block.size(); ++k) total += block[k];
  }
  return total / all;
}

}  // namespace rankscope
