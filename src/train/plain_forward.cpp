#include "train/plain_forward.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <deque>
#include <map>

#include "base/error.h"
#include "model/embed_and_unembed.h"
#include "tensors/norm.h"
#include "train/fused_forward.h"

namespace rankscope {
namespace {

using at::Tensor;

class Masks : public Dropout {
 public:
  Masks(double share, uint64_t seed)
      : keep_(1 - share), generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {}
  Tensor operator()(const Tensor& x) override {
    // Drawn on the host, so that every device trains with the same masks.
    const Tensor mask = x.is_cpu() ? at::empty_like(x) : at::empty(x.sizes(), x.options().device(at::kCPU));
    return x * mask.bernoulli_(keep_, generator_).div_(keep_).to(x.device());
  }

 private:
  double keep_;
  at::Generator generator_;
};

// `sequences` of `tokens` each, or as long as `lengths` says, one behind another.
Batch fresh_packing(int64_t sequences, int64_t tokens, const std::vector<int64_t>& lengths) {
  Batch b;
  b.offsets.push_back(0);
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t length = lengths.empty() ? tokens : lengths[static_cast<size_t>(s)];
    for (int64_t i = 0; i < length; ++i) b.positions.push_back(i);
    b.offsets.push_back(b.offsets.back() + length);
    b.samples.push_back(s);
  }
  b.types.assign(b.positions.size(), 0);
  b.content.assign(b.positions.size(), 1);
  return b;
}

// The same, kept: every step of a trial packs its sequences alike, and what lies on the device stays there.
std::shared_ptr<const Batch> packed(int64_t sequences, int64_t tokens, const std::vector<int64_t>& lengths) {
  constexpr size_t kKept = 8;
  struct Entry {
    int64_t sequences, tokens;
    std::vector<int64_t> lengths;
    std::shared_ptr<const Batch> batch;
  };
  thread_local std::deque<Entry> known;
  for (const Entry& e : known)
    if (e.sequences == sequences && e.tokens == tokens && e.lengths == lengths) return e.batch;
  if (known.size() == kKept) known.pop_front();
  known.push_back(
      {sequences, tokens, lengths, std::make_shared<const Batch>(fresh_packing(sequences, tokens, lengths))});
  return known.back().batch;
}

class Plain {
 public:
  Plain(const ModelSpec& spec, const ParameterViews& p, Dropout* dropout, int64_t trial,
        BlockObserver* observer)
      : spec_(spec), p_(p), dropout_(dropout), trial_(trial), observer_(observer) {}

  // Through the stream's blocks and its final norm.
  Tensor stream(const StreamSpec& s, const Tensor& tokens, const Batch& batch) {
    const std::string prefix = s.name.empty() ? "" : s.name + ".";
    const auto weights = [&](const std::string& part) { return p_.part(prefix + part, trial_); };
    const Weights embed = weights("embed");
    Tensor x = s.embedding.vocabulary > 0 ? at::embedding(embed.get("W_E"), tokens) : tokens;
    x = dropped(embedded(x, batch, s.embedding, embed));
    BlockObserver nobody;
    BlockObserver& sees = observer_ != nullptr ? *observer_ : nobody;
    for (size_t l = 0; l < s.blocks.size(); ++l) {
      const BlockPlan plan(s.blocks[l], spec_.width);
      const Weights block = weights(fmt::format("blocks.{}", s.blocks[l].weights));
      x = run_block(x, {plan, block, batch, sees, &others_, dropout_, at::GradMode::is_enabled()});
      if (sees.wants("hook_resid_post")) sees.see("hook_resid_post", x);
    }
    return apply_norm(x, s.final_norm, weights("ln_final"), "");
  }

  void source(const StreamSpec& s, const Tensor& tokens, const Batch& batch) {
    const Tensor& x = made_.emplace_back(stream(s, tokens, batch));
    others_.emplace(s.name, OtherStream{x, batch});
  }

  Tensor readout(Tensor x, int64_t tokens) {
    if (spec_.output.last_token) x = x.unflatten(0, {-1, tokens}).select(1, tokens - 1);
    if (spec_.output.kind == HeadKind::none) return x.narrow(-1, 0, spec_.output.channels);
    const Weights unembed = p_.part("unembed", trial_);
    x = before_vocabulary(dropped(x), spec_, unembed);
    return capped(at::linear(x, unembed.get("W_U"), unembed.get_or_none("b_U")), spec_.output);
  }

 private:
  Tensor dropped(const Tensor& x) const { return dropout_ != nullptr ? (*dropout_)(x) : x; }

  const ModelSpec& spec_;
  const ParameterViews& p_;
  Dropout* dropout_;
  int64_t trial_;
  BlockObserver* observer_;
  std::deque<Tensor> made_;
  std::map<std::string, OtherStream> others_;
};

}  // namespace

std::unique_ptr<Dropout> seeded_dropout(double share, uint64_t seed) {
  return share > 0 ? std::make_unique<Masks>(share, seed) : nullptr;
}

Tensor plain_forward(const ModelSpec& spec, const ParameterViews& parameters, const TaskBatch& batch,
                     Dropout* dropout, int64_t trial, BlockObserver* observer) {
  Plain pass(spec, parameters, dropout, trial, observer);
  if (batch.ids.defined()) {  // words, already one behind another
    const auto packing = packed(batch.sequences, 0, batch.lengths);
    return pass.readout(pass.stream(spec, batch.ids, *packing), 0);
  }
  const Tensor tokens = batch.tokens, asks = batch.queries.defined() ? batch.queries : tokens;
  const auto packing = packed(asks.size(0), asks.size(1), batch.lengths);
  const auto sources = packed(tokens.size(0), tokens.size(1), {});
  for (const StreamSpec& s : spec.sources) pass.source(s, tokens.flatten(0, 1), *sources);
  const Tensor answers = pass.readout(pass.stream(spec, asks.flatten(0, 1), *packing), asks.size(1));
  return batch.target.defined() ? answers.reshape(batch.target.sizes()) : answers;
}

Tensor forward(const std::vector<const ModelSpec*>& specs, const ParameterViews& parameters,
               const TaskBatch& batch, Dropout* dropout) {
  if (parameters.merged()) {
    if (dropout != nullptr) throw Error("the fused operators have no dropout");
    return fused_forward(specs, parameters, batch);
  }
  if (parameters.trials() < 0) return plain_forward(*specs.front(), parameters, batch, dropout);
  std::vector<Tensor> answers;
  const auto of_trial = [](const Tensor& x, int64_t t) { return x.defined() ? x[t] : x; };
  for (int64_t t = 0; t < parameters.trials(); ++t) {
    TaskBatch own = batch;
    own.tokens = of_trial(batch.tokens, t);
    own.queries = of_trial(batch.queries, t);
    own.target = of_trial(batch.target, t);
    answers.push_back(plain_forward(*specs[static_cast<size_t>(t)], parameters, own, dropout, t));
  }
  return at::stack(answers);
}

std::vector<Tensor> gradients_of(const Tensor& loss, const std::vector<Tensor>& leaves) {
  std::vector<Tensor> out = torch::autograd::grad({loss}, leaves, {}, {}, false, true);
  for (size_t i = 0; i < out.size(); ++i)
    if (!out[i].defined()) out[i] = at::zeros_like(leaves[i]);
  return out;
}

Tensor squared_error(const Tensor& answers, const Tensor& target) {
  return (answers - target).square().sum(-1).mean(-1);
}

}  // namespace rankscope
