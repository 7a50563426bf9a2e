#include "ops/checks.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace rankscope {

using at::Tensor;

Tensor or_none(const MaybeTensor& x) { return x.has_value() ? *x : Tensor(); }

void require(bool holds, const std::string& what) {
  if (!holds) throw usage_error(what);
}

void require_memory(const Tensor& x, const char* name) {
  require((x.is_cpu() || x.is_cuda()) && x.layout() == at::kStrided,
          fmt::format("{} must be a dense tensor on the CPU or on CUDA", name));
}

void require_floats(const Tensor& x, const char* name) {
  require_memory(x, name);
  require(x.scalar_type() == at::kFloat || (x.scalar_type() == at::kDouble && !x.is_cuda()),
          fmt::format("{} must be float32, or float64 on the CPU", name));
}

void require_rows(const Tensor& x, const char* name) {
  require_floats(x, name);
  require(x.dim() == 2 || x.dim() == 3, fmt::format("{} must be [rows, width] or [trials, ...]", name));
}

void require_sequences(const Tensor& x, int64_t tokens, const char* name) {
  require(x.dim() == 2 || x.dim() == 3, fmt::format("{} must be [tokens, columns] or [trials, ...]", name));
  require(tokens >= 1 && tokens <= 256,
          fmt::format("{} tokens a sequence are not between 1 and 256", tokens));
  require(x.size(-2) % tokens == 0,
          fmt::format("{} has {} rows: not a multiple of {}", name, x.size(-2), tokens));
}

void require_alike(const Tensor& x, const Tensor& first, const char* name) {
  require(
      x.device() == first.device() && x.scalar_type() == first.scalar_type() && x.layout() == first.layout(),
      fmt::format("{} must have the device, the type and the layout of the first tensor", name));
}

void require_parameter(const Tensor& p, const Tensor& x, std::vector<int64_t> sizes, const char* name) {
  require_alike(p, x, name);
  if (x.dim() == 3) sizes.insert(sizes.begin(), x.size(0));
  require(p.sizes() == at::IntArrayRef(sizes), fmt::format("{} must be [{}]", name, fmt::join(sizes, ", ")));
}

void require_running(const Tensor& q, const Tensor& k, const Tensor& v) {
  require_floats(q, "q");
  require_alike(k, q, "k");
  require_alike(v, q, "v");
  require(q.dim() == 3 && q.numel() > 0, "q must be [sequences, tokens, width], with at least one of each");
  require(k.sizes() == q.sizes(), "k must have the shape of q");
  require(v.dim() == 3 && v.numel() > 0 && v.size(0) == q.size(0) && v.size(1) == q.size(1),
          fmt::format("v must be [{}, {}, width]", q.size(0), q.size(1)));
}

void require_each_token(const Tensor& x, const Tensor& q, const char* name) {
  require_alike(x, q, name);
  require(x.sizes() == at::IntArrayRef{q.size(0), q.size(1)},
          fmt::format("{} must be [{}, {}]", name, q.size(0), q.size(1)));
}

int64_t trials_of(const Tensor& x) { return x.dim() == 3 ? x.size(0) : 1; }

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

int64_t width_beside(int64_t width_v, int64_t all, const char* what) {
  const int64_t rest = all - width_v;
  require(width_v >= 1 && rest >= 2 && rest % 2 == 0,
          fmt::format("{} {} are not Q, K and a V of {}", all, what, width_v));
  return rest / 2;
}

}  // namespace rankscope
