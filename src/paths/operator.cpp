#include "paths/operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/stats.h"
#include "operator/frozen.h"
#include "operator/jacobian.h"
#include "operator/spectrum.h"
#include "operator/token_map.h"
#include "pass/manifest.h"
#include "pass/precision.h"
#include "pass/report_sample.h"
#include "pass/scanned_model.h"
#include "paths/limits.h"
#include "spectral/rows.h"

namespace rankscope {
namespace {

constexpr int64_t kVocabularyTile = 4096;

// As attention maps are pooled for a page: mean over outputs, sum over inputs.
NamedArray pooled(std::string name, const std::vector<double>& map, int64_t tokens) {
  const int64_t side = map_side(tokens, 2);
  NamedArray out{std::move(name), {side, side}, std::vector<float>(static_cast<size_t>(side * side))};
  const auto begins = [&](int64_t b) { return b * tokens / side; };
  for (int64_t a = 0; a < side; ++a)
    for (int64_t b = 0; b < side; ++b) {
      double sum = 0;
      for (int64_t i = begins(a); i < begins(a + 1); ++i)
        for (int64_t j = begins(b); j < begins(b + 1); ++j) sum += map[static_cast<size_t>(i * tokens + j)];
      out.values[static_cast<size_t>(a * side + b)] =
          static_cast<float>(sum / static_cast<double>(begins(a + 1) - begins(a)));
    }
  return out;
}

class OperatorMeasure {
 public:
  OperatorMeasure(const OperatorRequest& request, const ScannedModel& model, WeightSource& source)
      : request_(request), spec_(model.spec()), source_(source) {}

  void see(const Batch& batch, OperatorResult& out) {
    sample_ = batch.samples.front();
    const FrozenNetwork frozen(spec_, source_, batch);
    put("bias_share", share(frozen.bias(), frozen.output() - frozen.bias()));
    spectrum(frozen);
    if (request_.map) token_to_token(frozen, out);
    if (request_.jacobian_probes > 0 && frozen.input().scalar_type() == at::kDouble) {
      const JacobianDistance j =
          jacobian_distance(frozen, spec_, source_, batch, request_.jacobian_probes, request_.scan.seed);
      put("jacobian_distance", j.relative, j.relative_error);
      put("jacobian_norm_ratio", j.norm_ratio, j.norm_ratio_error);
    }
  }

  void finish(ResultTable& table) const {
    for (const Name& metric : order_) {
      const std::vector<std::pair<int64_t, double>>& values = values_.at(metric);
      std::vector<double> plain;
      for (const auto& [sample, value] : values) plain.push_back(value);
      const Estimate e = arithmetic_mean(plain);
      table.rows.push_back({"full", "operator", -1, -1, metric, e.value,
                            plain.size() == 1 ? errors_.at(metric) : e.stderr_,
                            static_cast<int64_t>(plain.size()), static_cast<int32_t>(spec_.depth()), "all"});
      for (const auto& [sample, value] : values)
        table.samples.push_back({"full",
                                 "operator",
                                 -1,
                                 -1,
                                 metric,
                                 "all",
                                 sample,
                                 value,
                                 {},
                                 static_cast<int32_t>(spec_.depth())});
    }
  }

 private:
  /// `error`: that of an estimate from probes. Over several samples their scatter holds it.
  void put(const std::string& metric, double value, double error = kNone) {
    const Name name(metric);
    if (values_.count(name) == 0) order_.push_back(name);
    values_[name].emplace_back(sample_, value);
    errors_[name] = error;
  }

  static double share(const at::Tensor& part, const at::Tensor& rest) {
    const double a = part.norm().item<double>(), b = rest.norm().item<double>();
    return a + b > 0 ? a / (a + b) : 0.0;
  }

  void spectrum(const FrozenNetwork& frozen) {
    const TopSpectrum top = top_spectrum(frozen.trunk(), frozen.input(), request_.top, request_.tolerance,
                                         request_.applications, request_.scan.seed);
    for (size_t i = 0; i < top.sigma.size(); ++i) {
      put(fmt::format("sigma_{}", i + 1), top.sigma[i]);
      put(fmt::format("sigma_{}_residual", i + 1), top.residual[i]);
    }
    put("applications", static_cast<double>(top.applications));
    const Unfoldings u = unfoldings(frozen.trunk(), frozen.input(), request_.probes, request_.scan.seed);
    put("operator_frobenius", u.frobenius, u.frobenius_error);
    const double over = top.sigma.front() * top.sigma.front();
    put("operator_stable_rank", u.frobenius * u.frobenius / over, 2 * u.frobenius * u.frobenius_error / over);
    put("participation_matrix", u.matrix.value, u.matrix.stderr_);
    put("participation_token_out", u.token_out.value, u.token_out.stderr_);
    put("participation_channel_out", u.channel_out.value, u.channel_out.stderr_);
    put("participation_token_in", u.token_in.value, u.token_in.stderr_);
    put("participation_channel_in", u.channel_in.value, u.channel_in.stderr_);
  }

  // The direction each output token is read in: its predicted word's row of the vocabulary, else its own.
  at::Tensor directions(const FrozenNetwork& frozen, at::Tensor& offset) const {
    const at::Tensor& y = frozen.head_output();
    if (spec_.output.kind == HeadKind::none) {
      offset = at::zeros({y.size(0)}, y.options());
      return y / at::linalg_vector_norm(y, 2, {-1}, true).clamp_min(1e-300);
    }
    const Weights unembed = source_.load("unembed");
    const at::Tensor& b_U = unembed.get_or_none("b_U");
    at::Tensor best = at::full({y.size(0)}, -INFINITY, y.options());
    at::Tensor word = at::zeros({y.size(0)}, y.options().dtype(at::kLong));
    for (int64_t first = 0; first < spec_.output.vocabulary; first += kVocabularyTile) {
      const int64_t count = std::min(kVocabularyTile, spec_.output.vocabulary - first);
      const at::Tensor W = source_.row_range("unembed.W_U", first, count);
      const at::Tensor logits = at::linear(y, W, b_U.defined() ? b_U.narrow(0, first, count) : b_U);
      const auto [value, index] = logits.max(1);
      const at::Tensor better = value > best;
      word = at::where(better, index + first, word);
      best = at::where(better, value, best);
    }
    offset = b_U.defined() ? b_U.index_select(0, word) : at::zeros({y.size(0)}, y.options());
    return source_.rows("unembed.W_U", word);
  }

  void token_to_token(const FrozenNetwork& frozen, OperatorResult& out) {
    at::Tensor offset, in, in_out;
    const at::Tensor u = directions(frozen, offset);
    token_map(frozen.trunk().then(frozen.head()), frozen.input(), u, in, in_out);
    const at::Tensor target = (u * frozen.head_output()).sum(1) + offset;
    const at::Tensor sum = in_out.sum(1) + (u * frozen.head_bias()).sum(1) + offset;
    put("completeness", ((sum - target).abs().max() / target.abs().max()).item<double>());
    const at::Tensor size = in_out.abs(), total = size.sum(1).clamp_min(1e-300);
    put("map_self", (size.diagonal() / total).mean().item<double>());
    put("map_first", (size.select(1, 0) / total).mean().item<double>());
    TokenMap map{sample_, in.size(0), {}, {}};
    const auto copy = [](const at::Tensor& t) {
      const at::Tensor c = t.to(at::kCPU, at::kDouble).contiguous();
      return std::vector<double>(c.data_ptr<double>(), c.data_ptr<double>() + c.numel());
    };
    map.in = copy(in);
    map.in_out = copy(in_out);
    put("map_effective_rank", effective_rank(spectrum_of(map.in.data(), map.tokens, map.tokens, 0x1p-52)));
    if (request_.scan.show && sample_ == kShownSample)
      for (const auto& [name, values] : {std::pair{"in", &map.in}, {"in_out", &map.in_out}})
        out.scan.arrays.push_back(pooled(fmt::format("operator.map.{}", name), *values, map.tokens));
    out.maps.push_back(std::move(map));
  }

  const OperatorRequest& request_;
  const ModelSpec& spec_;
  WeightSource& source_;
  int64_t sample_ = 0;
  std::vector<Name> order_;
  std::map<Name, std::vector<std::pair<int64_t, double>>> values_;
  std::map<Name, double> errors_;
};

void say(const OperatorRequest& request, ScanResult& result) {
  const auto value = [&](const char* metric) {
    const Row* r = result.table.find("full", metric, -1);
    return r == nullptr ? kNone : r->value;
  };
  Finding rank;
  rank.topic = "operator";
  rank.value = value("participation_matrix");
  rank.sentence =
      value("operator_frobenius") == 0
          ? "frozen at this input the network is the zero map: its biases alone make the output"
          : fmt::format(
                "the network at this input is a linear map that uses {:.3g} directions (stable rank "
                "{:.3g}, largest singular value {:.3g})",
                rank.value, value("operator_stable_rank"), value("sigma_1"));
  result.verdict.push_back(rank);
  if (const double distance = value("jacobian_distance"); !std::isnan(distance)) {
    Finding f;
    f.topic = "trust";
    f.value = distance;
    f.sentence = fmt::format(
        "the frozen operator is exact at the input; away from it the true Jacobian differs by "
        "{:.0f} % (||J - T|| / ||J||)",
        100 * distance);
    result.verdict.push_back(f);
  } else if (request.jacobian_probes > 0 && request.scan.dtype != "float64") {
    result.notes.emplace_back("the distance from the Jacobian needs --dtype float64 and was left out");
  }
  for (int64_t i = 1; i <= request.top; ++i) {
    const double residual = value(fmt::format("sigma_{}_residual", i).c_str());
    if (!(residual > request.tolerance)) continue;
    result.notes.push_back(
        fmt::format("from sigma_{} on the relative residual is above {:.1g} after {} "
                    "applications: --applications gives them more",
                    i, request.tolerance, request.applications));
    break;
  }
}

void require_numbers(const OperatorRequest& request) {
  require_within(request.top, kTop, "--top");
  require_within(request.applications, kApplications, "--applications");
  require_within(request.probes, kProbes, "--probes");
  require_within(request.jacobian_probes, kJacobianProbes, "--jacobian");
  if (!std::isfinite(request.tolerance) || request.tolerance < 0)
    throw usage_error(fmt::format("--tolerance should be a number of at least 0, not {}", request.tolerance));
}

}  // namespace

OperatorResult measure_operator(const OperatorRequest& request, const ProgressCallback& progress) {
  const auto start = std::chrono::steady_clock::now();
  require_numbers(request);
  prepare_run(request.scan);
  const ScannedModel model(request.scan, request.init);
  const ScanInput input = model.input();
  const auto source = model.source(request.scan.dtype, request.scan.seed);
  const std::vector<Batch> batches = make_batches(input.samples, model.spec(), 1);
  OperatorResult out;
  out.scan.spec = model.spec();
  out.scan.notes = input.notes;
  OperatorMeasure measure(request, model, *source);
  for (size_t b = 0; b < batches.size(); ++b) {
    measure.see(batches[b], out);
    if (progress) progress(static_cast<int64_t>(b) + 1, static_cast<int64_t>(batches.size()), "samples");
  }
  measure.finish(out.scan.table);
  say(request, out.scan);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  out.scan.manifest = make_manifest(request.scan, model.checkpoint(), input, out.scan, {}, seconds.count());
  add_precision(out.scan.manifest, request.scan, model.spec(), *source, batches.front());
  if (!request.init.empty()) out.scan.manifest["init"] = request.init;
  for (const TokenMap& map : out.maps)
    if (map.sample == kShownSample)
      out.scan.manifest["token_map"] = {{"sample", map.sample}, {"tokens", map.tokens}};
  return out;
}

}  // namespace rankscope
