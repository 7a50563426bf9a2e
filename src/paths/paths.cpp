#include "paths/paths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"
#include "operator/frozen.h"
#include "operator/paths.h"
#include "operator/rerun.h"
#include "parts/program.h"
#include "pass/manifest.h"
#include "pass/output.h"
#include "pass/precision.h"
#include "pass/scanned_model.h"
#include "pass/stream_metrics.h"
#include "paths/chained.h"
#include "paths/layer_paths.h"
#include "paths/limits.h"
#include "paths/sampled.h"

namespace rankscope {
namespace {

class FrozenPaths {
 public:
  FrozenPaths(const PathsRequest& request, const ModelSpec& spec, WeightSource& source, ResultTable& table)
      : request_(request),
        spec_(spec),
        source_(source),
        table_(table),
        site_(hidden_site(spec)),
        has_head_(spec.output.kind != HeadKind::none) {}

  void see(const Batch& batch) {
    const FrozenNetwork frozen(spec_, source_, batch);
    if (request_.by == "length")
      by_length(frozen, batch);
    else if (request_.by == "layer")
      by_layer(frozen, batch);
    else
      by_head(frozen, batch);
  }

  void finish() {
    for (const auto& reading : metrics_) reading->finish(table_);
  }

 private:
  // Readings appear in the table in the order in which they are first asked for.
  StreamMetrics& reading(const std::string& variant, int length, int layer = -1, int head = -1) {
    const auto [it, fresh] = places_.emplace(std::tuple(variant, length, layer, head), metrics_.size());
    if (fresh)
      metrics_.push_back(std::make_unique<StreamMetrics>(variant, Site{site_, layer, length, head}, spec_));
    return *metrics_[it->second];
  }

  void by_length(const FrozenNetwork& frozen, const Batch& batch) {
    const at::Tensor sums =
        path_sums(frozen.trunk(), frozen.input(), {request_.grade_mlp, request_.grade_norm});
    const at::Tensor lengths = sums.sum(2).sum(1);  // [K, N, d]
    std::vector<StreamMetrics*> to;
    std::vector<at::Tensor> states;
    const auto add = [&](const char* name, int length, const at::Tensor& x) {
      to.push_back(&reading(name, length));
      to.back()->see(x, batch);
      states.push_back(x);
    };
    reading("full", -1).see(frozen.output(), batch);
    at::Tensor so_far = frozen.bias().clone();
    for (int k = 0; k < static_cast<int>(lengths.size(0)); ++k) {
      so_far = so_far + lengths[k];
      add("only", k, lengths[k]);
      add("upto", k, so_far);
      add("allbut", k, frozen.output() - lengths[k]);
    }
    add("bias", -1, frozen.bias());
    const std::vector<double> bias = rms_by_sample(frozen.bias(), batch);
    const std::vector<double> total = norms(lengths, batch, "only", bias);
    for (size_t s = 0; s < total.size(); ++s)
      to.back()->sample("path_share", batch.samples[s], total[s] > 0 ? bias[s] / total[s] : kNone);
    if (request_.grade_mlp) norms(sums.sum(2).sum(0), batch, "mlp", bias);
    if (request_.grade_norm) norms(sums.sum(1).sum(0), batch, "norm", bias);
    if (has_head_) compare(frozen, states, to, batch);
  }

  // path_norm of each sum, and its share of the sum of the norms, that of the bias stream among them: what is
  // returned.
  std::vector<double> norms(const at::Tensor& sums, const Batch& batch, const char* kind,
                            std::vector<double> total) {
    std::vector<std::vector<double>> rms;
    for (int64_t k = 0; k < sums.size(0); ++k) {
      rms.push_back(rms_by_sample(sums[k], batch));
      for (size_t s = 0; s < total.size(); ++s) total[s] += rms.back()[s];
    }
    for (size_t k = 0; k < rms.size(); ++k) {
      StreamMetrics& r = reading(kind, static_cast<int>(k));
      for (size_t s = 0; s < total.size(); ++s) {
        r.sample("path_norm", batch.samples[s], rms[k][s]);
        r.sample("path_share", batch.samples[s], total[s] > 0 ? rms[k][s] / total[s] : kNone);
      }
    }
    return total;
  }

  void by_layer(const FrozenNetwork& frozen, const Batch& batch) {
    const at::Tensor marginals = layer_marginals(frozen.trunk(), frozen.input());  // [L, K, N, d]
    std::vector<StreamMetrics*> to;
    std::vector<at::Tensor> without;  // the output less the paths through a layer
    for (int l = 0; l < static_cast<int>(marginals.size(0)); ++l) {
      const at::Tensor all = marginals[l].sum(0);
      to.push_back(&part(all, batch, l, -1));
      without.push_back(frozen.output() - all);
      for (int k = 1; k < static_cast<int>(marginals.size(1)); ++k)
        norm(reading("through", k, l), marginals[l][k], batch);
    }
    if (has_head_) compare(frozen, without, to, batch);
    alphas(frozen, batch);
  }

  static at::Tensor affine(const FrozenStep& step, const at::Tensor& x) {
    AffineChain one;
    one.push(step);
    return one.affine(x);
  }

  // What a layer passes on beside what its attention writes; the published one has no square root.
  void alphas(const FrozenNetwork& frozen, const Batch& batch) {
    // For each sample the column and the row norm, in one copy.
    const auto products = [&](const at::Tensor& x) {
      std::vector<at::Tensor> norms;
      for (int64_t s = 0; s < batch.count(); ++s) {
        const at::Tensor a = x.narrow(0, batch.offsets[static_cast<size_t>(s)], batch.length(s)).abs();
        norms.push_back(a.sum(0).max());
        norms.push_back(a.sum(1).max());
      }
      const at::Tensor here = at::stack(norms).to(at::kCPU, at::kDouble);
      std::vector<double> out;
      for (int64_t s = 0; s < batch.count(); ++s)
        out.push_back(here.data_ptr<double>()[2 * s] * here.data_ptr<double>()[2 * s + 1]);
      return out;
    };
    at::Tensor x = frozen.input();
    for (const FrozenStep& step : frozen.trunk().steps()) {
      const at::Tensor next = affine(step, x);
      for (const Branch& branch : step.branches) {
        const auto attention = std::find_if(branch.begin(), branch.end(),
                                            [](const Element& e) { return e.kind == PartKind::attention; });
        if (attention == branch.end()) continue;
        const bool alone = step.branches.size() == 1;
        const at::Tensor written = !alone ? affine({false, {branch}}, x) : step.skip ? next - x : next;
        const std::vector<double> stream = products(x), wrote = products(written);
        for (size_t s = 0; s < stream.size(); ++s)
          reading("through", -1, attention->layer)
              .sample("path_alpha", batch.samples[s], stream[s] / (stream[s] + wrote[s]));
      }
      x = next;
    }
  }

  void by_head(const FrozenNetwork& frozen, const Batch& batch) {
    std::vector<std::pair<int, int>> which;
    const at::Tensor heads = head_marginals(frozen.trunk(), frozen.input(), which);
    for (size_t i = 0; i < which.size(); ++i)
      part(heads[static_cast<int64_t>(i)], batch, which[i].first, which[i].second);
  }

  // All paths through one part, whatever their length.
  StreamMetrics& part(const at::Tensor& x, const Batch& batch, int layer, int head) {
    StreamMetrics& r = reading("through", -1, layer, head);
    r.see(x, batch);
    norm(r, x, batch);
    return r;
  }

  static void norm(StreamMetrics& r, const at::Tensor& x, const Batch& batch) {
    const std::vector<double> rms = rms_by_sample(x, batch);
    for (size_t s = 0; s < rms.size(); ++s) r.sample("path_norm", batch.samples[s], rms[s]);
  }

  // output_kl of each state against the whole output.
  void compare(const FrozenNetwork& frozen, const std::vector<at::Tensor>& states,
               const std::vector<StreamMetrics*>& to, const Batch& batch) {
    const auto kl = output_kl(frozen.output(), states, spec_, source_, batch);
    for (size_t i = 0; i < states.size(); ++i)
      for (size_t s = 0; s < kl[i].size(); ++s) to[i]->sample("output_kl", batch.samples[s], kl[i][s]);
  }

  const PathsRequest& request_;
  const ModelSpec& spec_;
  WeightSource& source_;
  ResultTable& table_;
  std::string site_;
  bool has_head_;
  std::vector<std::unique_ptr<StreamMetrics>> metrics_;
  std::map<std::tuple<std::string, int, int, int>, size_t> places_;
};

std::vector<int64_t> heads_by_layer(const ModelSpec& spec) {
  std::vector<int64_t> out;
  for (const BlockSpec& block : spec.blocks) out.push_back(block.attention().heads);
  return out;
}

// Paths that are drawn choose among as many heads in every layer.
void require_equal_heads(const ModelSpec& spec) {
  const std::vector<int64_t> heads = heads_by_layer(spec);
  const auto [least, most] = std::minmax_element(heads.begin(), heads.end());
  if (*least != *most)
    throw Error(fmt::format("paths are drawn where every layer has as many heads, and these have {} and {}",
                            *least, *most))
        .hint("leave out --semantics and --chained: frozen paths are summed exactly");
}

// A chain of patterns says how tokens mix where nothing else mixes them.
void require_patterns_alone(const ModelSpec& spec) {
  for (int64_t l = 0; l < spec.depth(); ++l) {
    const BranchSpec& branch = *spec.blocks[static_cast<size_t>(l)].attention_branch();
    for (const Operation& o : program_of(branch, spec.width).operations)
      if (o.kind == Operation::Kind::convolve)
        throw Error(
            fmt::format("--chained multiplies attention matrices, and in layer {} a convolution mixes the "
                        "tokens, too",
                        l))
            .hint("leave out --chained: frozen paths follow both");
  }
}

// "625", and where there are a million or more "10^13.4".
std::string total_text(double log10) {
  return log10 < 6 ? fmt::format("{:.0f}", std::pow(10, log10)) : fmt::format("10^{:.1f}", log10);
}

/// "most paths have length 3 (42 % of 512)"; two lengths may be equally many.
std::string most_frequent(const PathCounts& counts) {
  const double most = counts.share[static_cast<size_t>(counts.mode)];
  constexpr double kSame = 1e-9;  // relative: shares are sums of products
  std::vector<std::string> lengths;
  for (size_t k = 0; k < counts.share.size(); ++k)
    if (counts.share[k] >= most * (1 - kSame)) lengths.push_back(std::to_string(k));
  const std::string of = fmt::format("{:.0f} % of {}", 100 * most, total_text(counts.log10_total));
  return lengths.size() == 1
             ? fmt::format("most paths have length {} ({})", lengths.front(), of)
             : fmt::format("lengths {} have equally many paths ({} each)", fmt::join(lengths, " and "), of);
}

// Counting and carrying, side by side.
Finding where_the_norm_is(const ResultTable& table, const ModelSpec& spec) {
  const PathCounts counts = path_counts(layer_paths(spec));
  int most = 0;
  double share = -1, bias = 0;
  for (const Row& r : table.rows)
    if (r.variant == "bias" && r.metric == "path_share")
      bias = r.value;
    else if (r.variant == "only" && r.metric == "path_share" && r.value > share) {
      share = r.value;
      most = r.depth;
    }
  Finding f;
  f.topic = "paths";
  f.value = share;
  if (!(share > 0)) {
    f.sentence = "no path carries anything at this input";
    return f;
  }
  f.sentence = fmt::format(
      "paths of length {} carry more than any other length, {:.0f} % of the sum of the norms, and biases "
      "{:.0f} %; counted, "
      "{}",
      most, 100 * share, 100 * bias, most_frequent(counts));
  return f;
}

}  // namespace

ScanResult measure_paths(const PathsRequest& request, const ProgressCallback& progress) {
  const auto start = std::chrono::steady_clock::now();
  require_within(request.paths, kPathsInADraw, "--paths");
  require_within(request.repeats, kRepeats, "--repeats");
  require_within(request.chains, kChains, "--chains");
  prepare_run(request.scan);
  const Semantics semantics = semantics_of(request.semantics);
  const std::vector<std::string> known{"length", "layer", "head"};
  if (std::find(known.begin(), known.end(), request.by) == known.end())
    throw unknown_name("reading", request.by, known, "rankscope paths --help");
  if (semantics != Semantics::frozen && request.by != "length")
    throw usage_error("paths run again are sampled by length: only frozen paths can be read by layer or head")
        .in("--semantics " + request.semantics);

  const PathsRequest usual;
  if (semantics == Semantics::frozen && (request.paths != usual.paths || request.repeats != usual.repeats))
    throw usage_error(
        "--paths and --repeats are of paths that are drawn, and frozen paths are summed exactly")
        .hint("--semantics rerun");
  if (!request.chained && request.chains != usual.chains)
    throw usage_error("--chains is of --chained").hint("--chained --chains 100");
  if (!request.chained && request.reference_order)
    throw usage_error("--reference-order is of --chained").hint("--chained --reference-order");
  if (!request.chained && (request.grade_mlp || request.grade_norm) &&
      (semantics != Semantics::frozen || request.by != "length"))
    throw usage_error("--grade-mlp and --grade-norm are of frozen paths by length");
  if (request.chained &&
      (semantics != Semantics::frozen || request.by != "length" || request.grade_mlp || request.grade_norm))
    throw usage_error(
        "--chained multiplies attention matrices: there is nothing to grade, read by part or run again");

  const ScannedModel model(request.scan, request.init);
  if (request.chained) require_patterns_alone(model.spec());
  if (request.chained || semantics != Semantics::frozen) require_equal_heads(model.spec());
  const ScanInput input = model.input();
  const auto source = model.source(request.scan.dtype, request.scan.seed);
  const std::vector<Batch> batches = make_batches(input.samples, model.spec(), request.scan.batch_size);
  ScanResult result;
  result.spec = model.spec();
  result.notes = input.notes;
  const auto each_batch = [&](auto see) {
    for (size_t b = 0; b < batches.size(); ++b) {
      see(batches[b]);
      if (progress) progress(static_cast<int64_t>(b) + 1, static_cast<int64_t>(batches.size()), "batches");
    }
  };
  if (request.chained) {
    ChainedPaths chains(request, model.spec(), static_cast<int64_t>(input.samples.size()));
    each_batch([&](const Batch& batch) { chains.see(FrozenNetwork(model.spec(), *source, batch), batch); });
    result.verdict.push_back(chains.finish(result.table));
  } else if (semantics == Semantics::frozen) {
    FrozenPaths paths(request, model.spec(), *source, result.table);
    each_batch([&](const Batch& batch) { paths.see(batch); });
    paths.finish();
    if (request.by == "length") result.verdict.push_back(where_the_norm_is(result.table, model.spec()));
  } else {
    SampledPaths paths(request, semantics, model.spec(), *source);
    each_batch([&](const Batch& batch) { paths.see(batch); });
    paths.finish(result.table, result.notes);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  result.manifest = make_manifest(request.scan, model.checkpoint(), input, result, {}, seconds.count());
  result.manifest["paths"] = {{"by", request.by}, {"semantics", request.semantics}};
  if (request.chained)
    result.manifest["paths"] = {{"chains", request.chains},
                                {"order", request.reference_order ? "P_1 ... P_k" : "P_k ... P_1"}};
  add_precision(result.manifest, request.scan, model.spec(), *source, batches.front());
  if (!request.init.empty()) result.manifest["init"] = request.init;
  return result;
}

}  // namespace rankscope
