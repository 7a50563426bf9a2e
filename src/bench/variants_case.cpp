#include "bench/variants_case.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "bench/variant_forms.h"
#include "kernels/running_attention.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

using at::Tensor;

// A length that no chunk divides.
constexpr int64_t kVerified = 1000;
// A call of softmax that would take longer, or hold more numbers for the way back, is not made.
constexpr double kLongest = 1.5, kMostNumbers = 5e8;

int64_t heads_on(const Machine& machine) { return machine.cuda() ? 16 : 4; }

VariantOperands operands(const Machine& machine, const RunningForm& form, int64_t tokens) {
  at::manual_seed(1);
  const auto options = at::TensorOptions().device(device_of(machine.device));
  const int64_t heads = heads_on(machine);
  const auto unit = [&] {
    const Tensor x = at::randn({heads, tokens, form.width}, options);
    return x / at::sqrt((x * x).sum(-1, true));
  };
  const auto gate = [&](double shift) { return at::sigmoid(at::randn({heads, tokens}, options) + shift); };
  VariantOperands x{unit(), unit(), at::randn({heads, tokens, form.width}, options)};
  x.push_back(gate(0));
  x.push_back(gate(4));
  return x;
}

VariantOperands leaves_of(const VariantOperands& x, at::ScalarType type, size_t differentiated) {
  VariantOperands out;
  for (size_t i = 0; i < x.size(); ++i) {
    out.push_back(x[i].to(type).detach());
    if (i < differentiated) out.back().requires_grad_(true);
  }
  return out;
}

// The output and the gradients of all that have one.
std::vector<Tensor> both(const VariantForm& f, const VariantOperands& x, at::ScalarType type, size_t count) {
  const VariantOperands in = leaves_of(x, type, count);
  const Tensor out = f(in);
  at::manual_seed(2);
  const Tensor dout = at::randn(out.sizes(), x[0].options()).to(type);
  std::vector<Tensor> all{out.detach()};
  const VariantOperands wanted(in.begin(), in.begin() + static_cast<int64_t>(count));
  for (const Tensor& g : torch::autograd::grad({out}, wanted, {dout})) all.push_back(g);
  return all;
}

double distance(const std::vector<Tensor>& x, const std::vector<Tensor>& exact) {
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double part = ((x[i].to(at::kDouble) - exact[i]).norm() / exact[i].norm()).item<double>();
    if (!(part <= worst)) worst = part;
  }
  return worst;
}

void verify(const Machine& machine, const RunningForm& form, VariantCurve& curve) {
  const VariantOperands x = operands(machine, form, kVerified);
  const auto exact = both(form.whole, x, at::kDouble, form.operands);
  curve.error = distance(both(form.ours, x, at::kFloat, form.operands), exact);
  curve.composed_error = distance(both(form.composed, x, at::kFloat, form.operands), exact);
  // Twice the composition's error, or what chains of float32 additions give, whose roundings add like a
  // random walk: two products inside a chunk and the states before it, in each of three stages (out, back to
  // the values, back to queries and keys).
  constexpr double kChain = 3 * (2 * kRunningChunk + static_cast<double>(kVerified) / kRunningChunk);
  const double allowed = std::max(2 * curve.composed_error, std::sqrt(kChain) * 0x1p-24);
  if (!(curve.error <= allowed))
    curve.fault =
        fmt::format("ours is off by {:.1e}, the composition by {:.1e}", curve.error, curve.composed_error);
}

// Forward without a graph, or the way back through a graph that is kept. Short rounds: the curve is long.
double milliseconds(Machine machine, const VariantForm& f, const VariantOperands& x, size_t count,
                    bool backward) {
  machine.quick = true;
  if (!backward)
    return 1e3 * seconds_of(machine, [&] {
             const c10::NoGradGuard no_gradients;
             f(x);
           });
  const VariantOperands in = leaves_of(x, at::kFloat, count);
  const Tensor out = f(in), dout = at::ones_like(out);
  const VariantOperands wanted(in.begin(), in.begin() + static_cast<int64_t>(count));
  return 1e3 *
         seconds_of(machine, [&] { torch::autograd::grad({out}, wanted, {dout}, /*retain_graph=*/true); });
}

// The fastest softmax, as long as it is sensible: each is left out once its next call would be too long.
class Softmax {
 public:
  Softmax(const Machine& machine, bool backward)
      : machine_(machine), backward_(backward), forms_(softmax_forms()), last_(forms_.size(), 0.0) {}

  double milliseconds(const VariantOperands& x) {
    const auto T = static_cast<double>(x[0].size(1));
    double best = kNone;
    for (size_t i = 0; i < forms_.size(); ++i) {
      // On a GPU the library's own kernel holds no matrix.
      const bool holds = i > 0 || !machine_.cuda();
      const double most = machine_.cuda() ? 4 * kMostNumbers : kMostNumbers;
      const bool held = holds && T * T * static_cast<double>(x[0].size(0)) > most;
      const double ahead = last_[i] * (T / at_) * (T / at_);
      if (ahead > 1e3 * (machine_.quick ? kLongest / 10 : kLongest) || held) {
        last_[i] = std::numeric_limits<double>::infinity();
        continue;
      }
      last_[i] = rankscope::milliseconds(machine_, forms_[i], x, 3, backward_);
      if (!(best <= last_[i])) best = last_[i];
    }
    at_ = T;
    return best;
  }

 private:
  const Machine& machine_;
  bool backward_;
  std::vector<VariantForm> forms_;
  std::vector<double> last_;  // of each
  double at_ = 1;             // tokens of that
};

// Between the last length at which softmax is faster and the next, in log-log; 16 where it never is, none
// where it is at the last. What launches cost hides the work of short lengths, so that one at which ours is
// ahead says nothing of the next: lengths go on until ours is ahead by a factor of two.
double crossover(const Machine& machine, const RunningForm& form, bool backward) {
  Softmax softmax(machine, backward);
  double before = 0, last = 16;
  for (int64_t T = 16; T <= (machine.quick ? 512 : 16384); T *= 2) {
    const VariantOperands x = operands(machine, form, T);
    const double theirs = softmax.milliseconds(x);
    if (!std::isfinite(theirs)) return last;
    const double ahead = std::log(milliseconds(machine, form.ours, x, form.operands, backward) / theirs);
    if (ahead > 0)
      last = kNone;
    else if (before > 0)
      last = static_cast<double>(T / 2) * std::exp2(before / (before - ahead));
    before = ahead;
    if (ahead < -std::log(2.0)) break;
  }
  return last;
}

const RunningForm& form_named(const std::string& name) {
  for (const RunningForm& form : running_forms())
    if (form.name == name) return form;
  throw unknown_name("form", name, variant_form_names());
}

}  // namespace

std::vector<std::string> variant_form_names() {
  std::vector<std::string> names;
  for (const RunningForm& form : running_forms()) names.push_back(form.name);
  return names;
}

VariantCurve measure_variant(Machine& machine, const std::string& name, bool backward,
                             const BenchProgress& progress) {
  const RunningForm& form = form_named(name);
  VariantCurve curve;
  curve.form = form.name;
  curve.backward = backward;
  curve.heads = heads_on(machine);
  curve.width = form.width;
  curve.state_rows = form.state_rows;
  verify(machine, form, curve);
  if (!curve.fault.empty()) return curve;
  measure_rates(machine);
  Softmax softmax(machine, backward);
  std::vector<double> lengths;
  for (int64_t T = machine.quick ? 256 : 1024; T <= (machine.quick ? 512 : 65536); T *= 2) {
    progress(static_cast<int64_t>(lengths.size()), 0,
             fmt::format("{} {} {}", name, backward ? "back" : "forth", T));
    const VariantOperands x = operands(machine, form, T);
    curve.tokens.push_back(T);
    lengths.push_back(static_cast<double>(T));
    curve.ours.push_back(milliseconds(machine, form.ours, x, form.operands, backward));
    curve.composed.push_back(milliseconds(machine, form.composed, x, form.operands, backward));
    curve.softmax.push_back(softmax.milliseconds(x));
  }
  curve.slope = log_log_slope(lengths, curve.ours);
  curve.crossover = crossover(machine, form, backward);
  return curve;
}

void set_limits(const Machine& machine, VariantCurve& curve) {
  if (!curve.fault.empty()) return;
  const RunningForm& form = form_named(curve.form);
  for (size_t i = 0; i < curve.tokens.size(); ++i) {
    const auto T = static_cast<double>(curve.tokens[i]), heads = static_cast<double>(curve.heads),
               width = static_cast<double>(curve.width);
    const double flops = T * heads * form.flops[curve.backward];
    const Limit limit = limit_of(machine, flops, T * heads * form.bytes[curve.backward]);
    curve.limit.push_back(1e3 * limit.seconds);
    curve.by_bytes.push_back(limit.by_bytes);
    if (!std::isfinite(curve.softmax[i])) continue;
    // Softmax: two products over half of the pairs; back, the scores again and four more.
    const double whole = (curve.backward ? 5 : 2) * T * T * width * heads;
    curve.share = flops / machine.matrix_rate / (1e-3 * curve.ours[i]);
    curve.softmax_share = whole / machine.matrix_rate / (1e-3 * curve.softmax[i]);
  }
}

}  // namespace rankscope
