#include "operator/spectrum.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"

namespace rankscope {
namespace {

constexpr uint32_t kStart = 0x6f706572, kProbe = 0x70726f62;  // "oper", "prob"
constexpr int64_t kCheckEvery = 4;
constexpr double kExhausted = 1e-13;

at::Tensor normal(const at::Tensor& like, int64_t count, uint64_t seed, uint32_t stream, uint32_t draw = 0) {
  at::Tensor out = at::empty({count, like.size(0), like.size(1)}, at::kDouble);
  const Philox random{seed, stream, draw};
  double* p = out.data_ptr<double>();
  for (int64_t i = 0; i < out.numel(); ++i) p[i] = random.normal(static_cast<uint64_t>(i));
  return out.to(like.options());
}

// Numbers that lie on a device one by one, in one copy.
std::vector<double> on_host(const std::vector<at::Tensor>& numbers) {
  const at::Tensor all = at::stack(numbers).to(at::kCPU, at::kDouble);
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

// Orthonormal rows that grow by one at a time.
class Basis {
 public:
  explicit Basis(int64_t most) : most_(most) {}
  /// Takes the others' part off x, twice, and appends what is left at length one; returns that length.
  double append(at::Tensor x) {
    if (!rows_.defined()) rows_ = at::empty({most_, x.numel()}, x.options());
    x = x.reshape({-1});
    for (int pass = 0; pass < 2 && count_ > 0; ++pass) {
      const at::Tensor others = rows_.narrow(0, 0, count_);
      x = x - others.t().mv(others.mv(x));
    }
    const double length = x.norm().item<double>();
    rows_[count_++] = length > 0 ? x / length : x;
    return length;
  }
  at::Tensor last() const { return rows_[count_ - 1]; }

 private:
  int64_t most_, count_ = 0;
  at::Tensor rows_;
};

struct Ritz {
  std::vector<double> sigma, last;  // singular values, last component of their left vectors
};

Ritz ritz(const std::vector<double>& alpha, const std::vector<double>& beta) {
  const auto m = static_cast<int64_t>(alpha.size());
  at::Tensor B = at::zeros({m, m}, at::kDouble);
  for (int64_t i = 0; i < m; ++i) {
    B[i][i] = alpha[static_cast<size_t>(i)];
    if (i + 1 < m) B[i][i + 1] = beta[static_cast<size_t>(i)];
  }
  const auto [U, S, Vh] = at::linalg_svd(B, false);
  Ritz out;
  for (int64_t i = 0; i < m; ++i) {
    out.sigma.push_back(S[i].item<double>());
    out.last.push_back(std::fabs(U[m - 1][i].item<double>()));
  }
  return out;
}

// E[G], G the Gram matrix of one probe, enters as its trace and its square; products of different probes are
// free of the bias that squares of one probe have.
Unfoldings::Ratio participation(const std::vector<at::Tensor>& grams) {
  const auto K = static_cast<double>(grams.size());
  at::Tensor total = at::zeros_like(grams.front());
  double own_square = 0, trace = 0, own_trace = 0;
  std::vector<at::Tensor> each;
  for (const at::Tensor& g : grams) total += g;
  for (const at::Tensor& g : grams) {
    each.push_back(g.trace());
    each.push_back(g.square().sum());
    each.push_back((g * total).sum());
  }
  each.push_back(total.square().sum());
  const std::vector<double> numbers = on_host(each);
  std::vector<double> traces, squares, overlaps;
  for (size_t k = 0; k < grams.size(); ++k) {
    traces.push_back(numbers[3 * k]);
    squares.push_back(numbers[3 * k + 1]);
    overlaps.push_back(numbers[3 * k + 2]);
  }
  for (size_t k = 0; k < traces.size(); ++k) {
    trace += traces[k];
    own_trace += traces[k] * traces[k];
    own_square += squares[k];
  }
  const double whole = numbers.back();
  const auto ratio = [&](double t, double t2, double w, double s) { return (t * t - t2) / (w - s); };
  Unfoldings::Ratio out;
  out.value = ratio(trace, own_trace, whole, own_square);
  double squared = 0;
  for (size_t k = 0; k < traces.size(); ++k) {
    const double without = ratio(trace - traces[k], own_trace - traces[k] * traces[k],
                                 whole - 2 * overlaps[k] + squares[k], own_square - squares[k]);
    squared += (without - out.value) * (without - out.value);
  }
  out.stderr_ = std::sqrt(squared * (K - 1) / K);
  return out;
}

}  // namespace

TopSpectrum top_spectrum(const AffineChain& chain, const at::Tensor& like, int64_t count, double tolerance,
                         int64_t most, uint64_t seed) {
  const c10::NoGradGuard no_grad;
  const int64_t N = like.size(0), d = like.size(1);
  const int64_t steps = std::clamp<int64_t>(most / 2, 1, N * d);
  Basis left(steps), right(steps + 1);
  right.append(normal(like, 1, seed, kStart));
  std::vector<double> alpha, beta;
  TopSpectrum out;
  for (int64_t step = 1; step <= steps; ++step) {
    const at::Tensor image = chain.apply(right.last().view({N, d}));
    alpha.push_back(left.append(image));
    const at::Tensor back = chain.adjoint(left.last().view(image.sizes()));
    const double b = right.append(back);
    out.applications += 2;
    const double scale = *std::max_element(alpha.begin(), alpha.end());
    const bool exhausted = alpha.back() <= kExhausted * scale || b <= kExhausted * scale;
    if (step == steps || exhausted || (step >= count && step % kCheckEvery == 0)) {
      const Ritz r = ritz(alpha, beta);
      const auto found = std::min<size_t>(static_cast<size_t>(count), r.sigma.size());
      out.sigma.assign(r.sigma.begin(), r.sigma.begin() + static_cast<std::ptrdiff_t>(found));
      out.residual.clear();
      for (size_t i = 0; i < found; ++i)
        out.residual.push_back(r.sigma[i] > 0 ? b * r.last[i] / r.sigma[i] : 0.0);
      const bool good =
          std::all_of(out.residual.begin(), out.residual.end(), [&](double x) { return x <= tolerance; });
      if (exhausted || (found == static_cast<size_t>(count) && good)) break;
    }
    beta.push_back(b);
  }
  return out;
}

Unfoldings unfoldings(const AffineChain& chain, const at::Tensor& like, int64_t probes, uint64_t seed) {
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> token_out, channel_out, token_in, channel_in;
  const auto collect = [](const at::Tensor& Y, std::vector<at::Tensor>& tokens,
                          std::vector<at::Tensor>& channels) {
    const at::Tensor y = Y.to(at::kDouble);
    tokens.push_back(y.matmul(y.t()));
    channels.push_back(y.t().matmul(y));
  };
  Unfoldings out;
  std::vector<at::Tensor> sums;            // ||T g||^2, then ||T^T T g||^2
  std::vector<at::Tensor> there_and_back;  // T^T T g
  const at::Tensor g = normal(like, probes, seed, kProbe);
  for (int64_t k = 0; k < probes; ++k) {
    const at::Tensor image = chain.apply(g[k]);
    collect(image, token_out, channel_out);
    sums.push_back(image.to(at::kDouble).square().sum());
    there_and_back.push_back(chain.adjoint(image).to(at::kDouble));
    const at::Tensor h = normal(image, 1, seed, kProbe, 1 + static_cast<uint32_t>(k))[0];
    collect(chain.adjoint(h), token_in, channel_in);
    out.applications += 3;
  }
  // tr(T^T T) from ||T g||^2, tr((T^T T)^2) from ||T^T T g||^2: both means over probes, unbiased as they are.
  const auto K = static_cast<double>(probes);
  for (const at::Tensor& back : there_and_back) sums.push_back(back.square().sum());
  const std::vector<double> numbers = on_host(sums);
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(probes);
  const std::vector<double> squares(numbers.begin(), middle), fourths(middle, numbers.end());
  double trace = 0, own = 0, fourth = 0;
  for (size_t i = 0; i < squares.size(); ++i) {
    trace += squares[i];
    own += squares[i] * squares[i];
    fourth += fourths[i];
  }
  const auto ratio = [](double t, double t2, double f, double n) {
    return (t * t - t2) / (n * (n - 1)) / (f / n);
  };
  out.frobenius = std::sqrt(trace / K);
  const double scatter = std::max(0.0, own - trace * trace / K) / (K - 1);  // of one probe's square
  out.frobenius_error = out.frobenius > 0 ? std::sqrt(scatter / K) / (2 * out.frobenius) : 0;
  out.matrix.value = ratio(trace, own, fourth, K);
  double squared = 0;
  for (size_t i = 0; i < squares.size(); ++i) {
    const double without =
        ratio(trace - squares[i], own - squares[i] * squares[i], fourth - fourths[i], K - 1);
    squared += (without - out.matrix.value) * (without - out.matrix.value);
  }
  out.matrix.stderr_ = std::sqrt(squared * (K - 1) / K);
  out.token_out = participation(token_out);
  out.channel_out = participation(channel_out);
  out.token_in = participation(token_in);
  out.channel_in = participation(channel_in);
  return out;
}

}  // namespace rankscope
