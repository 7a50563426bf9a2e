#include "spectral/on_device.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "kernels/cuda/tridiagonal.h"
#include "ops/fused.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// Matrices that are computed at once: their Gram matrices stay below this many bytes.
constexpr int64_t kMostBytes = int64_t{1} << 30;

bool reduces_here(const at::Tensor& g) {
  return g.is_cuda() && fused_kernels() && g.size(-1) <= cuda::kLongestTridiagonal;
}

/// The largest `wanted` eigenvalues, descending, by the library; NaN where an entry is not finite, since the
/// library does not promise to end then.
at::Tensor by_library(const at::Tensor& g, int64_t wanted) {
  const at::Tensor finite = g.isfinite().all(-1).all(-1, true);
  const at::Tensor safe = at::where(finite.unsqueeze(-1), g, at::zeros({}, g.options()));
  const at::Tensor values = at::linalg_eigvalsh(safe).flip(-1).narrow(-1, 0, wanted);
  return at::where(finite, values, at::full({}, std::numeric_limits<double>::quiet_NaN(), g.options()));
}

/// A matrix with a border: eigenvalues of the whole, or of the part behind the border with `offset` [count]
/// times the border's direction added, and of that part alone.
struct Bordered {
  at::Tensor g;       // [count, k + 1, k + 1]
  at::Tensor offset;  // undefined: the whole counts
};

SigmaPair eigenvalues(const Bordered& b, int64_t inner_wanted) {
  const int64_t count = b.g.size(0), size = b.g.size(1), k = size - 1;
  const int64_t wanted = inner_wanted > 0 ? std::min(inner_wanted, k) : k;
  if (!reduces_here(b.g)) {
    const at::Tensor inner = b.g.narrow(1, 1, k).narrow(2, 1, k);
    if (!b.offset.defined()) return {by_library(b.g, k), by_library(inner, wanted)};
    const at::Tensor direction = b.g.select(1, 0).narrow(1, 1, k);
    const at::Tensor share =
        b.offset / direction.square().sum(-1).clamp_min(std::numeric_limits<double>::min());
    const at::Tensor added =
        direction.unsqueeze(2) * direction.unsqueeze(1) * share.unsqueeze(-1).unsqueeze(-1);
    return {by_library(inner + added, k), by_library(inner, wanted)};
  }
  const at::Tensor g = b.g.contiguous(), d = at::empty({count, size}, g.options()), e = at::empty_like(d),
                   plain = at::empty({count, k}, g.options()),
                   centered = at::empty({count, wanted}, g.options());
  void* stream = current_stream(g);
  cuda::tridiagonalise(count, size, g.data_ptr<double>(), d.data_ptr<double>(), e.data_ptr<double>(), stream);
  const double* offset = b.offset.defined() ? b.offset.data_ptr<double>() : nullptr;
  cuda::tridiagonal_eigenvalues({count, size, offset != nullptr ? 1 : 0, k}, d.data_ptr<double>(),
                                e.data_ptr<double>(), offset, plain.data_ptr<double>(), stream);
  cuda::tridiagonal_eigenvalues({count, size, 1, wanted}, d.data_ptr<double>(), e.data_ptr<double>(), nullptr,
                                centered.data_ptr<double>(), stream);
  return {plain, centered};
}

at::Tensor root(const at::Tensor& squares) { return squares.clamp_min(0).sqrt(); }

/// `some` matrices of x.
SigmaPair singular_values_of(const CenteredRows& x, int64_t wanted) {
  const int64_t m = x.rows.size(1), n = x.rows.size(2);
  const at::Tensor size = x.number.sqrt().unsqueeze(-1);
  SigmaPair squares;
  if (m <= n) {
    const at::Tensor all = at::cat({(size * x.mean).unsqueeze(1), x.rows}, 1);
    squares = eigenvalues({at::bmm(all, all.transpose(1, 2)), {}}, wanted);
  } else {
    const at::Tensor g = at::zeros({x.rows.size(0), n + 1, n + 1}, x.rows.options());
    g.narrow(1, 1, n).narrow(2, 1, n).copy_(at::bmm(x.rows.transpose(1, 2), x.rows));
    g.select(1, 0).narrow(1, 1, n).copy_(x.mean);
    squares = eigenvalues({g, (size * x.mean).square().sum(-1).contiguous()}, wanted);
  }
  return {root(squares.plain), root(squares.centered)};
}

/// One number a spectrum, 0 where the spectrum is zero, NaN where it is NaN.
at::Tensor of_nonzero(const at::Tensor& sigma, const at::Tensor& number) {
  const at::Tensor largest = sigma.select(-1, 0);
  return at::where(largest == 0, at::zeros({}, sigma.options()), number);
}

at::Tensor scaled(const at::Tensor& sigma) { return sigma / sigma.select(-1, 0).unsqueeze(-1); }

}  // namespace

CenteredRows centered_rows(const at::Tensor& a) {
  const at::Tensor x = a.to(at::kDouble), mean = x.mean(1);
  return {x - mean.unsqueeze(1), mean, at::full({x.size(0)}, static_cast<double>(x.size(1)), x.options())};
}

SigmaPair singular_values(const CenteredRows& x, int64_t centered_wanted) {
  const int64_t count = x.rows.size(0), k = std::min(x.rows.size(1), x.rows.size(2)) + 1;
  const int64_t most = std::max<int64_t>(1, kMostBytes / (k * k * static_cast<int64_t>(sizeof(double))));
  if (count <= most) return singular_values_of(x, centered_wanted);
  std::vector<at::Tensor> plain, centered;
  for (int64_t first = 0; first < count; first += most) {
    const int64_t some = std::min(most, count - first);
    const SigmaPair pair = singular_values_of(
        {x.rows.narrow(0, first, some), x.mean.narrow(0, first, some), x.number.narrow(0, first, some)},
        centered_wanted);
    plain.push_back(pair.plain), centered.push_back(pair.centered);
  }
  return {at::cat(plain), at::cat(centered)};
}

at::Tensor centered_singular_values(const at::Tensor& rows, int64_t wanted) {
  const bool wide = rows.size(1) <= rows.size(2);
  const at::Tensor turned = rows.transpose(1, 2);
  return root(largest_eigenvalues(wide ? at::bmm(rows, turned) : at::bmm(turned, rows), wanted));
}

at::Tensor product_singular_values(const at::Tensor& left, const at::Tensor& right) {
  const at::Tensor a = left.to(at::kDouble), b = right.to(at::kDouble);
  const at::Tensor inner = at::bmm(a.transpose(1, 2), a), outer = at::bmm(b, b.transpose(1, 2));
  const int64_t r = inner.size(-1);
  // Rounding can leave a Gram matrix without full rank a little below zero: lifted by that much.
  const at::Tensor lift =
      static_cast<double>(r) * kEpsilon * inner.abs().sum(-1).amax(-1) + std::numeric_limits<double>::min();
  const at::Tensor eye = at::eye(r, inner.options());
  const at::Tensor factor =
      std::get<0>(at::linalg_cholesky_ex(inner + lift.unsqueeze(-1).unsqueeze(-1) * eye));
  const at::Tensor core = at::bmm(at::bmm(factor.transpose(1, 2), outer), factor);
  return root(largest_eigenvalues(core, r));
}

at::Tensor largest_eigenvalues(const at::Tensor& given, int64_t wanted) {
  if (!reduces_here(given)) return by_library(given, wanted);
  const at::Tensor g = given.contiguous();
  const int64_t count = g.size(0), n = g.size(1);
  const at::Tensor d = at::empty({count, n}, g.options()), e = at::empty_like(d),
                   values = at::empty({count, wanted}, g.options());
  void* stream = current_stream(g);
  cuda::tridiagonalise(count, n, g.data_ptr<double>(), d.data_ptr<double>(), e.data_ptr<double>(), stream);
  cuda::tridiagonal_eigenvalues({count, n, 0, wanted}, d.data_ptr<double>(), e.data_ptr<double>(), nullptr,
                                values.data_ptr<double>(), stream);
  return values;
}

at::Tensor first_of(const at::Tensor& sigma, const at::Tensor& number) {
  const at::Tensor place = at::arange(sigma.size(-1), sigma.options());
  return at::where(place < number.unsqueeze(-1), sigma, at::zeros({}, sigma.options()));
}

at::Tensor effective_rank_of(const at::Tensor& sigma) {
  const at::Tensor p = sigma / sigma.sum(-1, true);
  return of_nonzero(sigma, at::special_entr(p).sum(-1).exp());
}

at::Tensor stable_rank_of(const at::Tensor& sigma) {
  return of_nonzero(sigma, scaled(sigma).square().sum(-1));
}

at::Tensor stable_rank_gram_of(const at::Tensor& sigma) {
  return of_nonzero(sigma, scaled(sigma).square().square().sum(-1));
}

at::Tensor spectral_gap_of(const at::Tensor& sigma) {
  return sigma.size(-1) > 1 ? sigma.select(-1, 0) - sigma.select(-1, 1) : sigma.select(-1, 0);
}

at::Tensor numerical_rank_of(const at::Tensor& sigma, const at::Tensor& tolerance) {
  const at::Tensor largest = sigma.select(-1, 0);
  const at::Tensor rank = (sigma > (tolerance * largest).unsqueeze(-1)).sum(-1).to(sigma.scalar_type());
  return at::where(largest.isnan(), largest, rank);
}

}  // namespace rankscope
