#include "importance/evaluator.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "importance/groups.h"
#include "importance/kept.h"
#include "model/embed_and_unembed.h"
#include "parts/parameters.h"
#include "pass/finite.h"
#include "pass/output.h"
#include "pass/readout.h"

namespace rankscope {
namespace {

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

constexpr const char* kOverflow =
    "float64 arithmetic tells whether this is an overflow; inspect the checkpoint otherwise";

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
  Crossing crossing;
  for (size_t b = 0; b < batches.size(); ++b) require_finite(x[b], b, "blocks.0.hook_resid_pre", crossing);
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
      require_finite(x[b], b, fmt::format("blocks.{}.hook_resid_post", l), crossing);
      kept.back().push_back(std::move(k));
      flops += block_cost(block, batches[b]);
    }
    crossing.turn();
    if (job.progress) job.progress(l + 1, spec.depth(), "the full network");
  }
  crossing.finish();
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
    require_loss(b);
  }
}

int64_t Evaluator::Impl::number_of(int64_t sample) const {
  return job.numbers.empty() ? sample : job.numbers[static_cast<size_t>(sample)];
}

void Evaluator::Impl::require_finite(const at::Tensor& x, size_t batch, const std::string& site,
                                     Crossing& crossing) const {
  watch_finite(x, {}, crossing, [this, batch, site](int64_t row) {
    Batch named = batches[batch];
    for (int64_t& sample : named.samples) sample = number_of(sample);
    throw Error("the activations hold NaN, Inf, or numbers whose squares overflow")
        .in(fmt::format("{}, {}", site, token_of(named, {}, row)))
        .hint(kOverflow);
  });
}

// Finite activations can still have logits that are not.
void Evaluator::Impl::require_loss(size_t batch) const {
  for (const int64_t s : batches[batch].samples)
    if (!std::isfinite(full.loss[static_cast<size_t>(s)]))
      throw Error("the loss is not a finite number")
          .in(fmt::format("{}, sample {}", output_site(spec), number_of(s)))
          .hint(kOverflow);
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

std::vector<Judged> Evaluator::run(const std::vector<Variation>& variations) {
  std::vector<Judged> out(variations.size());
  each_group(*impl_, variations, [&](const auto& members, const auto& ends) {
    std::vector<Judged> judged = impl_->judge(ends);
    for (size_t k = 0; k < members.size(); ++k) out[members[k]] = std::move(judged[k]);
  });
  return out;
}

std::vector<Judged> Evaluator::beyond_added(const std::vector<Variation>& alone,
                                            const std::vector<Variation>& both,
                                            const std::vector<std::pair<size_t, size_t>>& pairs) {
  using States = std::vector<at::Tensor>;  // by batch
  std::vector<States> ends(alone.size());
  each_group(*impl_, alone, [&](const auto& members, const auto& states) {
    for (size_t k = 0; k < members.size(); ++k) ends[members[k]] = states[k];
  });
  States full;
  for (size_t b = 0; b < impl_->batches.size(); ++b) full.push_back(impl_->ended(impl_->last[b], b));
  std::vector<Judged> out(pairs.size());
  each_group(*impl_, both, [&](const auto& members, const auto& states) {
    for (size_t k = 0; k < members.size(); ++k) {
      const auto& [i, j] = pairs[members[k]];
      States added;
      for (size_t b = 0; b < full.size(); ++b) added.push_back(ends[i][b] + ends[j][b] - full[b]);
      std::vector<Judged> judged = impl_->judge({states[k], added});
      Judged& more = out[members[k]] = std::move(judged[0]);
      for (size_t s = 0; s < more.kl.size(); ++s) more.kl[s] -= judged[1].kl[s];
      for (size_t s = 0; s < more.loss.size(); ++s) more.loss[s] -= judged[1].loss[s];
    }
  });
  return out;
}

double Evaluator::bound(const std::vector<Unit>& units, Replacement replacement) const {
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
    if (u.kind == UnitKind::mlp &&
        replacement != Replacement::zero) {  // what stands in its place is of its own
      BlockSpec ran;
      ran.branches = {*spec.blocks[l].mlp_branch()};
      total += block_flops(spec, ran, 1);
    }
    if (u.kind == UnitKind::head)  // what the layer writes loses is a product with the head's part of W_O
      total += 2.0 * static_cast<double>(spec.blocks[l].attention().d_v * spec.width);
    for (size_t k = l + 1; k < block.size(); ++k) total += block[k];
  }
  return total / all;
}

}  // namespace rankscope
