#include "tasks/support/points.h"

#include "base/error.h"

namespace rankscope {
namespace {

constexpr uint32_t kPoints = 0, kQueries = 1;  // streams

at::Tensor unit(const at::Tensor& x) { return x / at::linalg_vector_norm(x, 2, {-1}, true); }

// Twice is enough: the second pass removes what rounding left of the first. A pass takes a vector's parts
// along all earlier ones at once: one after another it would be n^2 small operations, which is all a GPU
// would do.
at::Tensor orthonormal(const at::Tensor& x) {
  std::vector<at::Tensor> done;
  for (int64_t i = 0; i < x.size(-2); ++i) {
    at::Tensor v = x.select(-2, i);
    const at::Tensor before = i > 1 ? at::stack(done, -2) : at::Tensor();
    for (int pass = 0; pass < 2 && i > 0; ++pass)
      v = i == 1 ? v - done[0] * (done[0] * v).sum(-1, true)
                 : v - (before * (before * v.unsqueeze(-2)).sum(-1, true)).sum(-2);
    done.push_back(unit(v));
  }
  return at::stack(done, -2);
}

}  // namespace

at::Tensor gaussian(const Draw& draw, uint32_t stream, int64_t count, int64_t d) {
  const at::Tensor flat = draw.normals(stream, count * d);
  std::vector<int64_t> shape = flat.sizes().vec();
  shape.back() = count;
  shape.push_back(d);
  return flat.view(shape);
}

at::Tensor draw_points(const TaskSpec& spec, const Draw& draw) {
  const at::Tensor x = gaussian(draw, kPoints, spec.n, spec.d);
  if (spec.data == "ortho") return orthonormal(x);
  const at::Tensor points = unit(x);
  return spec.data == "doubled" ? at::cat({points, -points}, -2) : points;
}

at::Tensor draw_queries(const TaskSpec& spec, const Draw& draw) { return unit(gaussian_queries(spec, draw)); }

at::Tensor gaussian_queries(const TaskSpec& spec, const Draw& draw) {
  return gaussian(draw, kQueries, spec.queries, spec.d);
}

TaskBatch neighbours(const TaskSpec& spec, const Draw& draw, double sign) {
  TaskBatch batch;
  if (spec.data == "iid") {
    const Neighbours n =
        unit_neighbours(gaussian(draw, kPoints, spec.n, spec.d),
                        spec.queries > 0 ? gaussian_queries(spec, draw) : at::Tensor(), sign);
    batch.tokens = n.points;
    batch.queries = n.asks;
    batch.target = n.target;
    return batch;
  }
  batch.tokens = draw_points(spec, draw);
  if (spec.queries > 0) batch.queries = draw_queries(spec, draw);
  const at::Tensor& ask = spec.queries > 0 ? batch.queries : batch.tokens;
  batch.target = pick(batch.tokens, at::matmul(ask, batch.tokens.transpose(-1, -2)) * sign);
  return batch;
}

int64_t point_width(const TaskSpec& spec) { return spec.d; }
int64_t asked(const TaskSpec& spec) { return spec.queries > 0 ? spec.queries : token_count(spec); }

void check_points(const TaskSpec& spec) {
  if (spec.data != "iid" && spec.data != "ortho" && spec.data != "doubled")
    throw unknown_name("law of points", spec.data, {"iid", "ortho", "doubled"});
  if (spec.data == "ortho" && spec.n > spec.d)
    throw usage_error(fmt::format("there are no {} orthonormal points in {} dimensions", spec.n, spec.d))
        .hint("n of at most d, or data=iid");
}

}  // namespace rankscope
