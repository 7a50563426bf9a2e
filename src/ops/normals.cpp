#include "ops/normals.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <array>
#include <limits>
#include <numbers>

#include "kernels/cpu/normals.h"
#include "kernels/cuda/train.h"
#include "ops/checks.h"
#include "ops/fused.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

using at::Tensor;

constexpr int64_t kWord = 0xFFFFFFFF;

Tensor low(const Tensor& x) { return x.bitwise_and(kWord); }
Tensor high(const Tensor& x) { return low(x.bitwise_right_shift(32)); }

// The four words of every counter: keys [trials, 1], counters [1, counters], steps [trials, 1].
std::array<Tensor, 4> philox(const Tensor& seeds, uint32_t stream, const Tensor& steps,
                             const Tensor& counters) {
  Tensor c0 = low(counters), c1 = high(counters), c2 = low(steps),
         c3 = at::full_like(steps, static_cast<int64_t>(stream));
  Tensor k0 = low(seeds), k1 = high(seeds);
  for (int round = 0; round < 10; ++round) {
    const Tensor a = c0 * int64_t{0xD2511F53}, b = c2 * int64_t{0xCD9E8D57};  // modulo 2^64
    c0 = high(b).bitwise_xor(c1).bitwise_xor(k0);
    c1 = low(b);
    c2 = high(a).bitwise_xor(c3).bitwise_xor(k1);
    c3 = low(a);
    k0 = low(k0 + int64_t{0x9E3779B9});
    k1 = low(k1 + int64_t{0xBB67AE85});
  }
  return {c0, c1, c2, c3};
}

Tensor unit_interval(const Tensor& word) { return (word.to(at::kDouble) + 0.5) * 0x1p-32; }

}  // namespace

Tensor draw_normals_reference(const Tensor& seeds, uint32_t stream, const Tensor& steps, int64_t first,
                              int64_t count) {
  const int64_t begin = first / 4, end = (first + count + 3) / 4;
  const Tensor counters = at::arange(begin, end, seeds.options()).unsqueeze(0);
  const auto words = philox(seeds.unsqueeze(1), stream, steps.unsqueeze(1), counters);
  std::vector<Tensor> lanes;
  for (const size_t pair : {size_t{0}, size_t{2}}) {
    const Tensor radius = (unit_interval(words[pair]).log() * -2.0).sqrt();
    const Tensor angle = unit_interval(words[pair + 1]) * (2.0 * std::numbers::pi);
    lanes.push_back(radius * angle.cos());
    lanes.push_back(radius * angle.sin());
  }
  return at::stack(lanes, -1).flatten(1).narrow(1, first - 4 * begin, count).to(at::kFloat).contiguous();
}

Tensor draw_normals(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, int64_t count) {
  if (!fused_kernels()) {
    const auto one = [](int64_t value) { return at::full({1}, value, at::kLong); };
    return draw_normals_reference(one(static_cast<int64_t>(seed)), stream, one(step), first, count)[0];
  }
  Tensor out = at::empty({count}, at::kFloat);
  fill_normals(seed, stream, step, static_cast<uint64_t>(first), count, out.data_ptr<float>());
  return out;
}

Tensor draw_normals(const Tensor& seeds, uint32_t stream, const Tensor& steps, int64_t count) {
  if (!fused_kernels()) return draw_normals_reference(seeds, stream, steps, 0, count);
  Tensor out = at::empty({seeds.size(0), count}, seeds.options().dtype(at::kFloat));
  if (!seeds.is_cuda()) {
    for (int64_t t = 0; t < seeds.size(0); ++t)
      fill_normals(static_cast<uint64_t>(seeds.data_ptr<int64_t>()[t]), stream,
                   static_cast<uint32_t>(steps.data_ptr<int64_t>()[t]), 0, count,
                   out.data_ptr<float>() + t * count);
    return out;
  }
  cuda::fill_normals(seeds.size(0), reinterpret_cast<const uint64_t*>(seeds.data_ptr<int64_t>()), stream,
                     steps.data_ptr<int64_t>(), count, out.data_ptr<float>(), current_stream(seeds));
  return out;
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

Tensor call_normals(const Tensor& seeds, int64_t stream, const Tensor& steps, int64_t count) {
  require_memory(seeds, "seeds");
  require(seeds.dim() == 1 && steps.sizes() == seeds.sizes() && seeds.scalar_type() == at::kLong &&
              steps.scalar_type() == at::kLong && seeds.device() == steps.device(),
          "seeds and steps must be int64 [trials] on one device");
  require(stream >= 0 && stream <= std::numeric_limits<uint32_t>::max() && count >= 0,
          "stream must fit 32 bits and count must not be negative");
  return draw_normals(seeds.contiguous(), static_cast<uint32_t>(stream), steps.contiguous(), count);
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def("normals(Tensor seeds, int stream, Tensor steps, int count) -> Tensor", rankscope::call_normals);
}
