#include "pass/output.h"

#include <c10/core/GradMode.h>
#include <algorithm>

#include "base/stats.h"
#include "model/embed_and_unembed.h"
#include "pass/running_softmax.h"

namespace rankscope {
namespace {

constexpr int64_t kVocabularyTile = 4096;
constexpr const char* kLogits = "unembed.hook_out";

// The sums over each sample of a number for each token [N]: [S]. Few operations, because a GPU waits for
// each.
at::Tensor sums_of_samples(const at::Tensor& x, const Batch& batch) {
  const int64_t count = batch.count(), each = batch.length(0);
  bool alike = true;
  for (int64_t s = 1; s < count; ++s) alike = alike && batch.length(s) == each;
  if (alike) return x.view({count, each}).sum(1);
  std::vector<at::Tensor> sums;
  for (int64_t s = 0; s < count; ++s)
    sums.push_back(x.narrow(0, batch.offsets[static_cast<size_t>(s)], batch.length(s)).sum());
  return at::stack(sums);
}

class Comparison {
 public:
  Comparison(const FinalState& full, const PassPlan& plan, const std::vector<const FinalState*>& others,
             const PassPlan& other_plan, ResultTable& table)
      : full_(full), plan_(plan), others_(others), other_plan_(other_plan), table_(table) {}

  void distributions() {
    WeightSource& source = *plan_.sources.front();
    const Weights head = source.load("unembed");
    const auto unembeds = other_heads(head);
    site_ = kLogits;
    struct Other {
      at::Tensor h;
      RunningSoftmax softmax;
      at::Tensor weighted;  // E_p[a - b] with p of the full model
    };
    struct Running {
      at::Tensor h;  // of the full model
      RunningSoftmax softmax;
      std::vector<Other> others;
    };
    std::vector<Running> running;  // one a batch
    per_batch([&](size_t b, const Batch&) {
      const at::Tensor h = before_vocabulary((*full_.x)[b], source.spec(), head);
      const int64_t N = h.size(0);
      Running r{h, RunningSoftmax::of(N, h), {}};
      for (size_t o = 0; o < others_.size(); ++o)
        r.others.push_back({before_vocabulary((*others_[o]->x)[b], spec_of(o), *unembeds[o]),
                            RunningSoftmax::of(N, h), at::zeros({N}, r.softmax.sum.options())});
      running.push_back(std::move(r));
    });
    // Tiles in the outer loop: the table is read, and on a device copied, once.
    const int64_t V = source.spec().output.vocabulary;
    for (int64_t first = 0; first < V; first += kVocabularyTile) {
      const int64_t count = std::min(kVocabularyTile, V - first);
      const at::Tensor W = source.row_range("unembed.W_U", first, count);
      std::map<WeightSource*, at::Tensor> theirs{{&source, W}};
      for (size_t o = 0; o < others_.size(); ++o)
        if (theirs.count(&source_of(o)) == 0)
          theirs[&source_of(o)] = source_of(o).row_range("unembed.W_U", first, count);
      for (Running& r : running) {
        const RunningSoftmax::Tile a =
            r.softmax.add(capped(at::linear(r.h, W, slice(head, first, count)), source.spec().output));
        for (size_t o = 0; o < others_.size(); ++o) {
          Other& other = r.others[o];
          RunningSoftmax::Tile b = other.softmax.add(
              capped(at::linear(other.h, theirs[&source_of(o)], slice(*unembeds[o], first, count)),
                     spec_of(o).output));
          add_difference(other.weighted, a, b);
        }
      }
    }
    per_batch([&](size_t b, const Batch& batch) {
      std::vector<at::Tensor> means;
      const Running& r = running[b];
      for (const Other& other : r.others)
        means.push_back(sums_of_samples(kl_of(r.softmax, other.softmax, other.weighted), batch));
      std::vector<double> tokens;
      for (int64_t s = 0; s < batch.count(); ++s) tokens.push_back(static_cast<double>(batch.length(s)));
      record(batch, means, tokens);
    });
    flush();
  }

  void hidden_states() {
    site_ = hidden_site(plan_.sources.front()->spec());
    metric_ = "output_error";
    per_batch([&](size_t b, const Batch& batch) {
      const at::Tensor x = (*full_.x)[b].to(at::kDouble);
      const auto sizes = [&](const at::Tensor& of) {
        return sums_of_samples(of.square().sum(1), batch).sqrt();
      };
      const at::Tensor size = sizes(x).clamp_min(1e-300);
      std::vector<at::Tensor> errors;
      for (const FinalState* other : others_)
        errors.push_back(sizes((*other->x)[b].to(at::kDouble) - x) / size);
      record(batch, errors, std::vector<double>(static_cast<size_t>(batch.count()), 1.0));
    });
    flush();
  }

 private:
  const Variant& first_of(size_t o) const { return other_plan_.variants[others_[o]->variants.front()]; }
  const ModelSpec& spec_of(size_t o) const { return first_of(o).spec; }
  WeightSource& source_of(size_t o) const { return *other_plan_.sources[first_of(o).source]; }

  static at::Tensor slice(const Weights& head, int64_t first, int64_t count) {
    const at::Tensor& b = head.get_or_none("b_U");
    return b.defined() ? b.narrow(0, first, count) : b;
  }

  // The head's small tensors per other state; the full model's own where the source is the same.
  std::vector<const Weights*> other_heads(const Weights& head) {
    std::vector<const Weights*> out;
    for (size_t o = 0; o < others_.size(); ++o) {
      WeightSource* source = &source_of(o);
      if (source == plan_.sources.front()) {
        out.push_back(&head);
        continue;
      }
      if (!heads_.count(source)) heads_.emplace(source, source->load("unembed"));
      out.push_back(&heads_.at(source));
    }
    return out;
  }

  template <class Call>
  void per_batch(Call call) {
    values_.resize(others_.size());
    const std::vector<Batch>& batches = plan_.inputs.front();
    for (size_t b = 0; b < batches.size(); ++b) call(b, batches[b]);
  }

  // A number for each sample of each other state, made where the outputs are and copied together, over what
  // they are shares of.
  void record(const Batch& batch, const std::vector<at::Tensor>& numbers, const std::vector<double>& of) {
    if (numbers.empty()) return;
    const at::Tensor here = at::stack(numbers).cpu();  // [others, S]
    const double* value = here.data_ptr<double>();
    for (std::vector<std::pair<int64_t, double>>& values : values_)
      for (size_t s = 0; s < batch.samples.size(); ++s)
        values.emplace_back(batch.samples[s], *value++ / of[s]);
  }

  void flush() {
    const auto depth = static_cast<int32_t>(plan_.variants.front().spec.depth());
    for (size_t o = 0; o < others_.size(); ++o) {
      std::vector<double> plain;
      for (const auto& [sample, value] : values_[o]) plain.push_back(value);
      const Estimate e = arithmetic_mean(plain);
      for (const size_t v : others_[o]->variants) {
        const Name variant = other_plan_.variants[v].name;
        table_.rows.push_back({variant, site_, -1, -1, metric_, e.value, e.stderr_,
                               static_cast<int64_t>(plain.size()), depth, "all"});
        for (const auto& [sample, value] : values_[o])
          table_.samples.push_back({variant, site_, -1, -1, metric_, "all", sample, value, {}, depth});
      }
    }
  }

  const FinalState& full_;
  const PassPlan& plan_;
  const std::vector<const FinalState*>& others_;
  const PassPlan& other_plan_;
  ResultTable& table_;
  std::map<WeightSource*, Weights> heads_;
  std::vector<std::vector<std::pair<int64_t, double>>> values_;
  std::string site_;
  Name metric_ = "output_kl";
};

}  // namespace

std::string hidden_site(const ModelSpec& spec) {
  return spec.final_norm.there() ? "ln_final.hook_normalized"
                                 : fmt::format("blocks.{}.hook_resid_post", spec.depth() - 1);
}

std::string output_metric(const ModelSpec& spec) {
  return spec.output.kind != HeadKind::none ? "output_kl" : "output_error";
}

std::string output_site(const ModelSpec& spec) {
  return spec.output.kind != HeadKind::none ? kLogits : hidden_site(spec);
}

void compare_outputs(const FinalState& full, const PassPlan& plan,
                     const std::vector<const FinalState*>& others, const PassPlan& other_plan,
                     ResultTable& table, std::vector<std::string>& notes) {
  if (others.empty()) return;
  const c10::NoGradGuard no_grad;
  const ModelSpec& ours = plan.sources.front()->spec();
  const ModelSpec& theirs = other_plan.sources.front()->spec();
  Comparison comparison(full, plan, others, other_plan, table);
  if (ours.output.kind != HeadKind::none && theirs.output.kind != HeadKind::none &&
      ours.output.vocabulary == theirs.output.vocabulary)
    return comparison.distributions();
  if (ours.width == theirs.width) return comparison.hidden_states();
  notes.emplace_back("the outputs differ in shape and were not compared");
}

}  // namespace rankscope
