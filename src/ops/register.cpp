// The operators by name, for Python and for any other program on LibTorch: after
// torch.ops.load_library("librankscope.so") they are torch.ops.rankscope.*, gradients included. What comes
// through this door is checked here; the C++ functions behind it trust their callers. docs/OPERATORS.md
// describes them.
#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <c10/core/GradMode.h>
#include <fmt/ranges.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/adamw.h"
#include "ops/linear.h"
#include "ops/mlp.h"
#include "ops/neighbours.h"
#include "ops/normals.h"
#include "ops/pattern.h"
#include "ops/projected_attention.h"
#include "ops/skip_norm.h"
#include "ops/small_attention.h"
#include "ops/squared_error.h"

namespace rankscope {
namespace {

using at::Tensor;
// c10::optional in LibTorch 1.13, std::optional in later ones.
using MaybeTensor = decltype(std::declval<c10::IValue&>().toOptional<Tensor>());

void require(bool holds, const std::string& what) {
  if (!holds) throw usage_error(what);
}

// Kernels read memory: a tensor without any, or with another layout, is none of theirs.
void require_memory(const Tensor& x, const char* name) {
  require((x.is_cpu() || x.is_cuda()) && x.layout() == at::kStrided,
          fmt::format("{} must be a dense tensor on the CPU or on CUDA", name));
}

void require_floats(const Tensor& x, const char* name) {
  require_memory(x, name);
  require(x.scalar_type() == at::kFloat || (x.scalar_type() == at::kDouble && !x.is_cuda()),
          fmt::format("{} must be float32, or float64 on the CPU", name));
}

void require_alike(const Tensor& x, const Tensor& first, const char* name) {
  require(
      x.device() == first.device() && x.scalar_type() == first.scalar_type() && x.layout() == first.layout(),
      fmt::format("{} must have the device, the type and the layout of the first tensor", name));
}

int64_t trials_of(const Tensor& x) { return x.dim() == 3 ? x.size(0) : 1; }

// One number of heads and one scale for all trials, or one a trial.
HeadShape head_shape(const Tensor& first, at::IntArrayRef heads, at::ArrayRef<double> scale, int64_t width_qk,
                     int64_t width_v, bool hard, bool shared_values) {
  const auto trials = static_cast<size_t>(trials_of(first));
  require(trials >= 1, "a stack needs at least one trial");
  for (const size_t given : {heads.size(), scale.size()})
    require(given == 1 || given == trials,
            fmt::format("heads and scale need one entry, or one for each of the {} trials", trials));
  HeadShape shape{.heads = {},
                  .scale = {},
                  .width_qk = width_qk,
                  .width_v = width_v,
                  .hard = hard,
                  .shared_values = shared_values};
  for (size_t t = 0; t < trials; ++t) {
    const int64_t count = heads[heads.size() == 1 ? 0 : t];
    require(
        count >= 1 && count <= width_qk && width_qk % count == 0 && (shared_values || width_v % count == 0),
        fmt::format("{} heads do not divide the widths {} and {}", count, width_qk, width_v));
    require(!shared_values || count == heads[0], "with shared values every trial has the same heads");
    shape.heads.push_back(static_cast<int32_t>(count));
    shape.scale.push_back(static_cast<float>(scale[scale.size() == 1 ? 0 : t]));
  }
  return shape;
}

void require_sequences(const Tensor& x, int64_t tokens, const char* name) {
  require(x.dim() == 2 || x.dim() == 3, fmt::format("{} must be [tokens, columns] or [trials, ...]", name));
  require(tokens >= 1 && tokens <= 256,
          fmt::format("{} tokens a sequence are not between 1 and 256", tokens));
  require(x.size(-2) % tokens == 0,
          fmt::format("{} has {} rows: not a multiple of {}", name, x.size(-2), tokens));
}

Tensor call_small_attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t queries, int64_t keys,
                            at::IntArrayRef heads, at::ArrayRef<double> scale, bool hard,
                            bool shared_values) {
  require_floats(q, "q");
  require_alike(k, q, "k");
  require_alike(v, q, "v");
  require_sequences(q, queries, "q");
  require_sequences(k, keys, "k");
  require_sequences(v, keys, "v");
  require(q.dim() == k.dim() && q.dim() == v.dim() && trials_of(q) == trials_of(k) &&
              trials_of(q) == trials_of(v),
          "q, k and v must have the same trials");
  require(q.size(-1) == k.size(-1), "q and k must have the same width");
  require(k.size(-2) == v.size(-2) && q.size(-2) / queries == k.size(-2) / keys,
          "q, k and v must have the same number of sequences");
  return small_attention(q, k, v, queries, keys,
                         head_shape(q, heads, scale, q.size(-1), v.size(-1), hard, shared_values));
}

// The width of Q and of K where Q, K and V together have `all` of something.
int64_t width_beside(int64_t width_v, int64_t all, const char* what) {
  const int64_t rest = all - width_v;
  require(width_v >= 1 && rest >= 2 && rest % 2 == 0,
          fmt::format("{} {} are not Q, K and a V of {}", all, what, width_v));
  return rest / 2;
}

Tensor call_small_self_attention(const Tensor& qkv, int64_t tokens, at::IntArrayRef heads,
                                 at::ArrayRef<double> scale, int64_t width_v, bool hard) {
  require_floats(qkv, "qkv");
  require_sequences(qkv, tokens, "qkv");
  const int64_t width_qk = width_beside(width_v, qkv.size(-1), "columns");
  return small_self_attention(qkv, tokens, head_shape(qkv, heads, scale, width_qk, width_v, hard, false));
}

// Parameters have the trials of x in front, where it has them, and these sizes behind.
void require_parameter(const Tensor& p, const Tensor& x, std::vector<int64_t> sizes, const char* name) {
  require_alike(p, x, name);
  if (x.dim() == 3) sizes.insert(sizes.begin(), x.size(0));
  require(p.sizes() == at::IntArrayRef(sizes), fmt::format("{} must be [{}]", name, fmt::join(sizes, ", ")));
}

void require_rows(const Tensor& x, const char* name) {
  require_floats(x, name);
  require(x.dim() == 2 || x.dim() == 3, fmt::format("{} must be [rows, width] or [trials, ...]", name));
}

Tensor or_none(const MaybeTensor& x) { return x.has_value() ? *x : Tensor(); }

SkipNorm::Kind norm_named(const std::string& name) {
  if (name == "unit") return SkipNorm::Kind::unit;
  if (name == "rms") return SkipNorm::Kind::rms;
  if (name == "layer") return SkipNorm::Kind::layer;
  throw unknown_name("norm", name, {"unit", "rms", "layer"});
}

Tensor call_skip_norm(const Tensor& x, const MaybeTensor& u, const Tensor& gain, const MaybeTensor& bias,
                      std::string kind) {  // NOLINT: the dispatcher hands strings over by value
  const SkipNorm::Kind norm = norm_named(kind);
  require_rows(x, "x");
  if (u.has_value()) {
    require_alike(*u, x, "u");
    require(u->sizes() == x.sizes(), "u must have the shape of x");
  }
  require(x.size(-1) >= 1, "x has no columns");
  require_parameter(gain, x, {norm == SkipNorm::Kind::unit ? 1 : x.size(-1)}, "gain");
  require(bias.has_value() == (norm == SkipNorm::Kind::layer),
          "the layer norm needs a bias, the others none");
  if (bias.has_value()) require_parameter(*bias, x, {x.size(-1)}, "bias");
  return skip_norm(norm, x, or_none(u), gain, or_none(bias));
}

Tensor call_squared_error(const Tensor& answers, const Tensor& target, double weight, bool stacked) {
  require_floats(answers, "answers");
  require_alike(target, answers, "target");
  require(answers.dim() >= (stacked ? 2 : 1) && target.sizes() == answers.sizes(),
          "target must have the shape of answers");
  return squared_error_sum(answers, target, weight, stacked);
}

Tensor call_linear(const Tensor& x, const Tensor& W, const MaybeTensor& b) {
  require_rows(x, "x");
  require(W.dim() == x.dim(), "W must have the trials of x");
  require(W.size(-2) >= 1 && x.size(-1) >= 1, "a linear map needs at least one column on both sides");
  require_parameter(W, x, {W.size(-2), x.size(-1)}, "W");
  if (b.has_value()) require_parameter(*b, x, {W.size(-2)}, "b");
  return linear(x, W, or_none(b));
}

Tensor call_projected_self_attention(const Tensor& x, const Tensor& W, const MaybeTensor& b, int64_t tokens,
                                     at::IntArrayRef heads, at::ArrayRef<double> scale, int64_t width_v,
                                     bool hard) {
  require_floats(x, "x");
  require_sequences(x, tokens, "x");
  require(W.dim() == x.dim() && x.size(-1) >= 1, "W must have the trials of x, and x at least one column");
  const int64_t width_qk = width_beside(width_v, W.size(-2), "rows of W");
  require_parameter(W, x, {W.size(-2), x.size(-1)}, "W");
  if (b.has_value()) require_parameter(*b, x, {W.size(-2)}, "b");
  return projected_self_attention(x, W, or_none(b), tokens,
                                  head_shape(x, heads, scale, width_qk, width_v, hard, false));
}

Tensor call_mlp(const Tensor& x, const Tensor& W_in, const MaybeTensor& b_in, const Tensor& W_out,
                const MaybeTensor& b_out) {
  require_rows(x, "x");
  require(W_in.dim() == x.dim() && W_out.dim() == x.dim(), "W_in and W_out must have the trials of x");
  const int64_t hidden = W_in.size(-2), out = W_out.size(-2);
  require(hidden >= 1 && out >= 1 && x.size(-1) >= 1, "an MLP needs at least one column everywhere");
  require_parameter(W_in, x, {hidden, x.size(-1)}, "W_in");
  require_parameter(W_out, x, {out, hidden}, "W_out");
  if (b_in.has_value()) require_parameter(*b_in, x, {hidden}, "b_in");
  if (b_out.has_value()) require_parameter(*b_out, x, {out}, "b_out");
  return mlp(x, W_in, or_none(b_in), W_out, or_none(b_out));
}

// points and asks are sequences of rows; the kernel counts the numbers of one sequence in 32 bits.
void require_points(const Tensor& x, const char* name) {
  require_floats(x, name);
  require(x.dim() >= 2 && x.size(-2) >= 1 && x.size(-1) >= 1,
          fmt::format("{} must be [.., rows, width] with at least one row and one column", name));
  require(x.size(-2) <= std::numeric_limits<int32_t>::max() / x.size(-1),
          fmt::format("a sequence of {} has more than 2^31 numbers", name));
}

std::tuple<Tensor, MaybeTensor, Tensor> call_unit_neighbours(const Tensor& points, const MaybeTensor& asks,
                                                             bool farthest) {
  require_points(points, "points");
  if (asks.has_value()) {
    require_points(*asks, "asks");
    require_alike(*asks, points, "asks");
    std::vector<int64_t> sizes = points.sizes().vec();
    sizes[sizes.size() - 2] = asks->size(-2);
    require(asks->sizes() == at::IntArrayRef(sizes), "asks must have the sequences and the width of points");
  }
  Neighbours found =
      unit_neighbours(points.detach(), asks.has_value() ? asks->detach() : Tensor(), farthest ? -1.0 : 1.0);
  return {found.points, asks.has_value() ? MaybeTensor(found.asks) : MaybeTensor(), found.target};
}

std::tuple<Tensor, Tensor> call_pattern_statistics(const Tensor& pattern) {
  require_floats(pattern, "pattern");
  require(pattern.dim() >= 2 && pattern.size(-2) >= 1 && pattern.size(-1) >= 1,
          "pattern must be [.., queries, keys] with at least one of each");
  PatternStatistics found = pattern_statistics(pattern);
  return {found.entropy, found.received};
}

Tensor call_normals(const Tensor& seeds, int64_t stream, const Tensor& steps, int64_t count) {
  require_memory(seeds, "seeds");
  require(seeds.dim() == 1 && steps.sizes() == seeds.sizes() && seeds.scalar_type() == at::kLong &&
              steps.scalar_type() == at::kLong && seeds.device() == steps.device(),
          "seeds and steps must be int64 [trials] on one device");
  require(stream >= 0 && stream <= std::numeric_limits<uint32_t>::max() && count >= 0,
          "stream must fit 32 bits and count must not be negative");
  return draw_normals(seeds.contiguous(), static_cast<uint32_t>(stream), steps.contiguous(), count);
}

void call_adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& m, const Tensor& v,
                const Tensor& steps, const Tensor& lr, const Tensor& alive, double beta1, double beta2,
                double eps, double weight_decay) {
  require_memory(parameter, "parameter");
  require_memory(steps, "steps");
  require_memory(alive, "alive");
  require(parameter.dim() == 2 && parameter.scalar_type() == at::kFloat,
          "parameter must be float32 [trials, size]");
  const int64_t trials = parameter.size(0);
  for (const auto& [x, name] : {std::pair{&gradient, "gradient"}, {&m, "m"}, {&v, "v"}}) {
    require_alike(*x, parameter, name);
    require(x->sizes() == parameter.sizes(), fmt::format("{} must have the shape of parameter", name));
  }
  require(steps.dim() == 1 && steps.size(0) == trials && steps.scalar_type() == at::kLong &&
              steps.device() == parameter.device(),
          "steps must be int64 [trials] on the device of parameter");
  require(alive.dim() == 1 && alive.size(0) == trials && alive.scalar_type() == at::kInt &&
              alive.device() == parameter.device(),
          "alive must be int32 [trials] on the device of parameter");
  require_alike(lr, parameter, "lr");
  require(lr.dim() == 2 && lr.size(0) == trials && lr.size(1) >= 1,
          "lr must be [trials, rates] with at least one rate");
  const Tensor* written[] = {&parameter, &m, &v};
  for (size_t i = 0; i < std::size(written); ++i) {
    require(written[i]->is_contiguous(), "parameter, m and v must be contiguous");
    for (const Tensor* read : {&gradient, &lr}) at::assert_no_overlap(*read, *written[i]);
    for (size_t j = 0; j < i; ++j) at::assert_no_overlap(*written[j], *written[i]);
  }
  const AdamW rule{static_cast<float>(beta1), static_cast<float>(beta2), static_cast<float>(eps),
                   static_cast<float>(weight_decay)};
  for (const float beta : {rule.beta1, rule.beta2})
    require(beta >= 0 && beta < 1, fmt::format("a beta of {} is not in [0, 1)", beta));
  for (const float x : {rule.epsilon, rule.weight_decay})
    require(x >= 0 && std::isfinite(x), "eps and weight_decay must be finite and not negative");
  const c10::NoGradGuard no_gradients;
  // A kernel's writes are invisible to autograd, which must refuse a backward pass through what they changed.
  // Told first, it may refuse the writes themselves (inference tensors).
  for (const Tensor* x : written) x->unsafeGetTensorImpl()->bump_version();
  apply_adamw(rule, steps.contiguous(), lr.contiguous(), alive.contiguous(), {gradient}, {0}, parameter, m,
              v);
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def(
      "small_attention(Tensor q, Tensor k, Tensor v, int queries, int keys, int[] heads, float[] scale, "
      "bool hard=False, bool shared_values=False) -> Tensor",
      rankscope::call_small_attention);
  m.def(
      "small_self_attention(Tensor qkv, int tokens, int[] heads, float[] scale, int width_v, "
      "bool hard=False) -> Tensor",
      rankscope::call_small_self_attention);
  m.def(
      "projected_self_attention(Tensor x, Tensor W, Tensor? b, int tokens, int[] heads, float[] scale, "
      "int width_v, bool hard=False) -> Tensor",
      rankscope::call_projected_self_attention);
  m.def("skip_norm(Tensor x, Tensor? u, Tensor gain, Tensor? bias, str kind) -> Tensor",
        rankscope::call_skip_norm);
  m.def("squared_error(Tensor answers, Tensor target, float weight, bool stacked=False) -> Tensor",
        rankscope::call_squared_error);
  m.def("linear(Tensor x, Tensor W, Tensor? b) -> Tensor", rankscope::call_linear);
  m.def("mlp(Tensor x, Tensor W_in, Tensor? b_in, Tensor W_out, Tensor? b_out) -> Tensor",
        rankscope::call_mlp);
  m.def(
      "unit_neighbours(Tensor points, Tensor? asks, bool farthest=False) -> "
      "(Tensor unit_points, Tensor? unit_asks, Tensor target)",
      rankscope::call_unit_neighbours);
  m.def("pattern_statistics(Tensor pattern) -> (Tensor entropy, Tensor received)",
        rankscope::call_pattern_statistics);
  m.def("normals(Tensor seeds, int stream, Tensor steps, int count) -> Tensor", rankscope::call_normals);
  m.def(
      "adamw_(Tensor(a!) parameter, Tensor gradient, Tensor(b!) m, Tensor(c!) v, Tensor steps, Tensor lr, "
      "Tensor alive, float beta1, float beta2, float eps, float weight_decay) -> ()",
      rankscope::call_adamw);
}
