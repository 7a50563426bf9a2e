#include "pass/readout.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/embed_and_unembed.h"
#include "pass/output.h"
#include "pass/running_softmax.h"

namespace rankscope {
namespace {

constexpr int64_t kTile = 4096;
// Rows at once: a tile of logits that stays in a cache, or that fills a GPU.
int64_t rows_at_once(const at::Tensor& h) { return h.is_cuda() ? 16384 : 256; }

// What is known of one state after some tiles, [M].
struct Running {
  RunningSoftmax softmax;
  at::Tensor answer;    // the logit of what is asked for
  at::Tensor weighted;  // E_p[a - b] with logits a and p of the first state

  explicit Running(const at::Tensor& h)
      : softmax(RunningSoftmax::of(h.size(0), h)),
        answer(at::zeros_like(softmax.sum)),
        weighted(at::zeros_like(softmax.sum)) {}
};

class Reader {
 public:
  Reader(WeightSource& source, const std::vector<at::Tensor>& states, const at::Tensor& ids)
      : source_(source), states_(states), ids_(ids), bias_(source.load("unembed").get_or_none("b_U")) {
    for (const at::Tensor& h : states) running_.emplace_back(h);
  }

  std::vector<RowOutputs> run() {
    const int64_t words = source_.spec().output.vocabulary, rows = states_.front().size(0);
    for (int64_t first = 0; first < words; first += kTile) {
      const int64_t count = std::min(kTile, words - first);
      const at::Tensor W = source_.row_range("unembed.W_U", first, count);
      const at::Tensor b = bias_.defined() ? bias_.narrow(0, first, count) : bias_;
      for (int64_t row = 0; row < rows; row += rows_at_once(W))
        tile(W, b, first, row, std::min(rows_at_once(W), rows - row));
    }
    std::vector<RowOutputs> out;
    for (const Running& r : running_)
      out.push_back({ids_.defined() ? r.softmax.log_z() - r.answer : at::Tensor(),
                     kl_of(running_.front().softmax, r.softmax, r.weighted)});
    return out;
  }

 private:
  void tile(const at::Tensor& W, const at::Tensor& b, int64_t first, int64_t row, int64_t count) {
    const auto rows = [&](const at::Tensor& t) { return t.narrow(0, row, count); };
    const auto logits = [&](size_t s) {
      return capped(at::linear(rows(states_[s]), W, b), source_.spec().output);
    };
    at::Tensor here, index;  // which answers are words of this tile
    if (ids_.defined()) {
      const at::Tensor place = rows(ids_) - first;
      here = (place >= 0).logical_and(place < W.size(0));
      index = place.clamp(0, W.size(0) - 1).unsqueeze(1);
    }
    RunningSoftmax::Tile a;
    for (size_t s = 0; s < states_.size(); ++s) {
      const at::Tensor x = logits(s);
      Running& r = running_[s];
      RunningSoftmax::Tile own = r.softmax.part(row, count).add(x);
      if (here.defined()) {
        const at::Tensor answer = rows(r.answer);
        answer.copy_(at::where(here, x.gather(1, index).squeeze(1).to(at::kDouble), answer));
      }
      if (s == 0)
        a = std::move(own);
      else
        add_difference(rows(r.weighted), a, own);
    }
  }

  WeightSource& source_;
  const std::vector<at::Tensor>& states_;
  const at::Tensor& ids_;
  at::Tensor bias_;
  std::vector<Running> running_;
};

// What one state's samples lose, by their numbers in the scan.
struct SampleLosses {
  std::map<int64_t, std::pair<double, int64_t>> by_sample;  // mean, tokens asked for

  WeightedMean mean(int64_t& tokens) const {
    std::vector<double> means;
    std::vector<int64_t> counts;
    tokens = 0;
    for (const auto& [sample, value] : by_sample) {
      means.push_back(value.first);
      counts.push_back(value.second);
      tokens += value.second;
    }
    return mean_over_tokens(means, counts);
  }
};

SampleLosses losses_of(const FinalState& state, const Variant& variant, WeightSource& source,
                       const std::vector<Batch>& batches, const Answers& answers) {
  const Weights head = source.load("unembed");
  SampleLosses out;
  for (size_t b = 0; b < batches.size(); ++b) {
    const AnswerRows asked = rows_of(batches[b], answers);
    if (asked.rows.empty()) continue;
    const at::Tensor& x = (*state.x)[b];
    const auto on_device = [&](const std::vector<int64_t>& v) {
      return at::tensor(v, at::kLong).to(x.device());
    };
    const at::Tensor h = before_vocabulary(x.index_select(0, on_device(asked.rows)), variant.spec, head);
    const at::Tensor nll = read_rows(source, {h}, on_device(asked.ids)).front().nll.cpu();
    for (size_t s = 0; s < batches[b].samples.size(); ++s) {
      const int64_t first = asked.offsets[s], count = asked.offsets[s + 1] - first;
      if (count > 0)
        out.by_sample[batches[b].samples[s]] = {nll.narrow(0, first, count).mean().item<double>(), count};
    }
  }
  return out;
}

}  // namespace

std::vector<RowOutputs> read_rows(WeightSource& source, const std::vector<at::Tensor>& states,
                                  const at::Tensor& ids) {
  const c10::NoGradGuard no_grad;
  return Reader(source, states, ids).run();
}

double readout_flops(const ModelSpec& spec) {
  const OutputSpec& o = spec.output;
  if (o.kind == HeadKind::none) return 0;
  const double map = o.kind == HeadKind::transformed ? static_cast<double>(spec.width * o.width) : 0;
  return 2 * (map + static_cast<double>(o.vocabulary * o.width));
}

WeightedMean mean_over_tokens(const std::vector<double>& means, const std::vector<int64_t>& tokens) {
  double sum = 0, total = 0, squares = 0;
  for (size_t i = 0; i < means.size(); ++i) {
    sum += means[i] * static_cast<double>(tokens[i]);
    total += static_cast<double>(tokens[i]);
  }
  const double mean = sum / total, n = static_cast<double>(means.size());
  for (size_t i = 0; i < means.size(); ++i)
    squares += std::pow(static_cast<double>(tokens[i]) * (means[i] - mean), 2);
  return {mean, n > 1 ? std::sqrt(squares * n / (n - 1)) / total : kNone};
}

void add_losses(const std::vector<FinalState>& states, const PassPlan& plan,
                const std::vector<Questions>& questions, ResultTable& table) {
  const c10::NoGradGuard no_grad;
  std::vector<Row> rows;
  std::vector<SampleRow> samples;
  for (const FinalState& state : states) {
    const Variant& variant = plan.variants[state.variants.front()];
    const Questions& asked = questions[variant.input];
    if (asked.kind == LossKind::none) continue;
    WeightSource& source = *plan.sources[variant.source];
    const SampleLosses losses = losses_of(state, variant, source, plan.inputs[variant.input], asked.answers);
    if (losses.by_sample.empty()) continue;
    int64_t tokens = 0;
    const WeightedMean mean = losses.mean(tokens);
    const std::string site = output_site(source.spec());
    const auto n = static_cast<int64_t>(losses.by_sample.size());
    const auto depth = static_cast<int32_t>(variant.spec.depth());
    const Name metric = loss_metric(asked.kind);
    for (const size_t v : state.variants) {
      const Name name = plan.variants[v].name;
      rows.push_back({name, site, -1, -1, metric, mean.value, mean.error, n, depth, "all"});
      if (asked.kind == LossKind::next_token)
        rows.push_back({name, site, -1, -1, "perplexity", std::exp(mean.value),
                        std::exp(mean.value) * mean.error, n, depth, "all"});
      for (const auto& [sample, value] : losses.by_sample)
        samples.push_back({name, site, -1, -1, metric, "all", sample, value.first, {}, depth});
    }
  }
  // In the order of the variants, whatever states they share.
  const auto place = [&](const Row& r) {
    return std::find_if(plan.variants.begin(), plan.variants.end(),
                        [&](const Variant& v) { return r.variant.str() == v.name; });
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return place(a) < place(b); });
  const auto behind = std::find_if(table.rows.begin(), table.rows.end(), [](const Row& r) {
    return r.metric != "nll" && r.metric != "perplexity" && r.metric != "pseudo_nll";
  });
  table.rows.insert(behind, rows.begin(), rows.end());
  table.samples.insert(table.samples.begin(), samples.begin(), samples.end());
}

}  // namespace rankscope
