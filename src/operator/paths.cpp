#include "operator/paths.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "base/error.h"

namespace rankscope {
namespace {

constexpr int64_t kMostBytes = int64_t{8} << 30;

// A polynomial whose coefficients are streams: [.., degree + 1, .., N, d], one axis a variable.
using Polynomial = at::Tensor;

// t p for the variable of axis `axis`.
Polynomial raised(const Polynomial& p, int64_t axis) {
  return at::cat({at::zeros_like(p.narrow(axis, 0, 1)), p}, axis);
}

// The sum; the degrees need not agree.
Polynomial sum_of(const Polynomial& a, const Polynomial& b) {
  std::vector<int64_t> shape = a.sizes().vec();
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = std::max(shape[i], b.size(static_cast<int64_t>(i)));
  at::Tensor out = at::zeros(shape, a.options());
  for (const at::Tensor* term : {&a, &b}) {
    at::Tensor view = out;
    for (int64_t i = 0; i + 2 < out.dim(); ++i) view = view.narrow(i, 0, term->size(i));
    view.add_(*term);
  }
  return out;
}

// A part applied to every coefficient.
Polynomial through(const LinearPart& part, const Polynomial& p) {
  const at::Tensor streams = p.reshape({-1, p.size(-2), p.size(-1)});
  at::Tensor out = part.apply(streams);
  std::vector<int64_t> shape = p.sizes().vec();
  shape.back() = out.size(-1);
  return out.view(shape);
}

using Place = Branch::const_iterator;

// Along a branch; attention, MLP and norm are variables of the axes 0, 1, 2 where they are graded.
Polynomial along(Place from, Place to, Polynomial branch, const Grading& grading) {
  for (auto e = from; e != to; ++e) {
    const Polynomial applied = through(*e->part, branch);
    switch (e->kind) {
      case PartKind::attention:
        branch = raised(applied, 0);
        break;
      case PartKind::mlp:
        branch = grading.mlp ? raised(applied, 1) : applied;
        break;
      case PartKind::norm:
        branch = grading.norm ? sum_of(branch, raised(applied - branch, 2)) : applied;
        break;
      case PartKind::dense:
        branch = applied;
        break;
    }
  }
  return branch;
}

// One step of the chain.
Polynomial advance(const FrozenStep& step, const Polynomial& z, const Grading& grading) {
  Polynomial sum;
  for (const Branch& branch : step.branches) {
    const Polynomial term = along(branch.begin(), branch.end(), z, grading);
    sum = sum.defined() ? sum_of(sum, term) : term;
  }
  return step.skip ? sum_of(sum, z) : sum;
}

void require_room(const at::Tensor& x, int64_t streams) {
  const int64_t bytes = x.numel() * x.element_size();
  if (streams > kMostBytes / std::max<int64_t>(1, bytes))
    throw Error(fmt::format("{} sums of {} tokens are more than the {} GiB this may take", streams, x.size(0),
                            kMostBytes >> 30))
        .hint("a shorter --max-length, a smaller --batch-size, or fewer graded parts");
}

// Where a branch has its attention; its end where it has none.
Place attention_of(const Branch& branch) {
  return std::find_if(branch.begin(), branch.end(),
                      [](const Element& e) { return e.kind == PartKind::attention; });
}

int64_t count(const AffineChain& chain, PartKind kind) {
  int64_t n = 0;
  for (const FrozenStep& step : chain.steps())
    for (const Branch& branch : step.branches)
      n += std::count_if(branch.begin(), branch.end(), [&](const Element& e) { return e.kind == kind; });
  return n;
}

at::Tensor apply(Place from, Place to, at::Tensor z) {
  for (auto e = from; e != to; ++e) z = e->part->apply(z);
  return z;
}

const FrozenProgram& program_at(Place e) { return static_cast<const FrozenProgram&>(*e->part); }

// From z [1, N, d] in front of step `at` on: every head of an attention is a way of its own, all else one
// way.
void follow(const std::vector<FrozenStep>& steps, size_t at, const at::Tensor& z, size_t length,
            std::vector<double>& norms) {
  if (at == steps.size()) {
    norms[length] += z.norm().item<double>();
    return;
  }
  at::Tensor rest = steps[at].skip ? z : at::Tensor();
  for (const Branch& branch : steps[at].branches) {
    const Place a = attention_of(branch);
    const at::Tensor reached = apply(branch.begin(), a, z);
    if (a == branch.end()) {
      rest = rest.defined() ? rest + reached : reached;
      continue;
    }
    const at::Tensor by_head = program_at(a).apply_heads(reached);  // [H, 1, N, d]
    for (int64_t h = 0; h < by_head.size(0); ++h)
      follow(steps, at + 1, apply(a + 1, branch.end(), by_head[h]), length + 1, norms);
  }
  if (rest.defined()) follow(steps, at + 1, rest, length, norms);
}

}  // namespace

at::Tensor path_sums(const AffineChain& chain, const at::Tensor& x, const Grading& grading) {
  const c10::NoGradGuard no_grad;
  require_room(x, (count(chain, PartKind::attention) + 1) *
                      (grading.mlp ? count(chain, PartKind::mlp) + 1 : 1) *
                      (grading.norm ? count(chain, PartKind::norm) + 1 : 1));
  Polynomial z = x.view({1, 1, 1, x.size(0), x.size(1)});
  for (const FrozenStep& step : chain.steps()) z = advance(step, z, grading);
  return z;
}

at::Tensor layer_marginals(const AffineChain& chain, const at::Tensor& x) {
  const c10::NoGradGuard no_grad;
  const int64_t layers = count(chain, PartKind::attention);
  require_room(x, (layers + 1) * (layers + 1));
  // Axis 0 is the length; axis 1 holds the tags: all paths first, then those through each layer so far.
  Polynomial z = x.view({1, 1, 1, x.size(0), x.size(1)});
  for (const FrozenStep& step : chain.steps()) {
    Polynomial next = advance(step, z, {});
    // Through this layer: every path so far, taken along the branch.
    for (const Branch& branch : step.branches)
      if (attention_of(branch) != branch.end())
        next = at::cat({next, along(branch.begin(), branch.end(), z.narrow(1, 0, 1), {})}, 1);
    z = next;
  }
  return z.narrow(1, 1, layers).squeeze(2).transpose(0, 1);
}

at::Tensor head_marginals(const AffineChain& chain, const at::Tensor& x,
                          std::vector<std::pair<int, int>>& which) {
  const c10::NoGradGuard no_grad;
  int64_t heads = 0;
  for (const FrozenStep& step : chain.steps())
    for (const Branch& branch : step.branches)
      if (const Place a = attention_of(branch); a != branch.end()) heads += program_at(a).heads();
  require_room(x, heads + 1);
  which.clear();
  at::Tensor z = x.unsqueeze(0);  // all paths first, then those through each head so far
  for (const FrozenStep& step : chain.steps()) {
    at::Tensor next;
    std::vector<at::Tensor> through_heads;
    for (const Branch& branch : step.branches) {
      const Place a = attention_of(branch);
      const at::Tensor reached = apply(branch.begin(), a, z);
      const at::Tensor term = apply(a, branch.end(), reached);
      next = next.defined() ? next + term : term;
      if (a == branch.end()) continue;
      const FrozenProgram& attention = program_at(a);
      const at::Tensor tagged = attention.apply_heads(reached.narrow(0, 0, 1)).squeeze(1);  // [H, N, d]
      through_heads.push_back(apply(a + 1, branch.end(), tagged));
      for (int h = 0; h < static_cast<int>(attention.heads()); ++h) which.emplace_back(a->layer, h);
    }
    if (step.skip) next = next + z;
    through_heads.insert(through_heads.begin(), next);
    z = at::cat(through_heads);
  }
  return z.narrow(0, 1, z.size(0) - 1);
}

std::vector<double> sums_of_path_norms(const AffineChain& chain, const at::Tensor& x) {
  const c10::NoGradGuard no_grad;
  std::vector<double> norms(static_cast<size_t>(count(chain, PartKind::attention)) + 1);
  follow(chain.steps(), 0, x.unsqueeze(0), 0, norms);
  return norms;
}

}  // namespace rankscope
