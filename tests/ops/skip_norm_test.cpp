#include "ops/skip_norm.h"

#include <limits>

#include "ops/fused.h"
#include "ops/ops_support.h"

namespace rankscope {
namespace {

using Kind = SkipNorm::Kind;

struct Case {
  Kind kind;
  int64_t trials, rows, width;  // trials 0: no leading dimension
  bool skip;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Kind kind : {Kind::unit, Kind::rms, Kind::layer})
    for (const auto& [trials, rows, width] :
         {std::array<int64_t, 3>{0, 5, 64}, {1, 1, 3}, {3, 7, 33}, {2, 70, 16}, {2, 0, 8}})
      for (const bool skip : {true, false}) all.push_back({kind, trials, rows, width, skip});
  return all;
}

// x, u, gain, bias; what a case does not have is undefined.
std::vector<at::Tensor> operands(const Case& c) {
  at::manual_seed(3);
  const auto stacked = [&](std::vector<int64_t> shape) {
    if (c.trials > 0) shape.insert(shape.begin(), c.trials);
    return normals(shape);
  };
  return {stacked({c.rows, c.width}), c.skip ? stacked({c.rows, c.width}) : at::Tensor(),
          stacked({c.kind == Kind::unit ? 1 : c.width}),
          c.kind == Kind::layer ? stacked({c.width}) : at::Tensor()};
}

Operator fused(Kind kind) {
  return [kind](const std::vector<at::Tensor>& in) { return skip_norm(kind, in[0], in[1], in[2], in[3]); };
}
Operator plain(Kind kind) {
  return [kind](const std::vector<at::Tensor>& in) {
    return skip_norm_reference(kind, in[0], in[1], in[2], in[3]);
  };
}

TEST(SkipNormOperator, IsAsExactAsThePlainComposition) {
  for (const at::Device device : devices())
    for (const Case& c : cases()) expect_as_exact(fused(c.kind), plain(c.kind), operands(c), device);
}

TEST(SkipNormOperator, GradientsAreDerivatives) {
  for (const Case& c : cases()) expect_derivative(fused(c.kind), operands(c));
}

// The kernels give the same bits; the composition's sums may take another order over other strides.
bool same(const at::Tensor& a, const at::Tensor& b) {
  if (fused_kernels()) return a.equal(b);
  const double width = static_cast<double>(b.size(-1)), epsilon = std::numeric_limits<float>::epsilon();
  return (a - b).abs().max().item<double>() <= width * epsilon * b.abs().max().item<double>();
}

TEST(SkipNormOperator, StridedOperandsGiveTheSame) {
  for (const at::Device device : devices())
    for (const Kind kind : {Kind::unit, Kind::rms, Kind::layer}) {
      std::vector<at::Tensor> in = operands({kind, 3, 7, 20, true}), strided;
      for (at::Tensor& x : in)
        if (x.defined()) x = x.to(device);
      for (const at::Tensor& x : in) {  // among other numbers, columns apart
        strided.push_back(x);
        if (!x.defined()) continue;
        at::Tensor wide = at::zeros({x.size(0) * 2, x.numel() / x.size(0) * 3}, x.options());
        wide = wide.narrow(0, 1, x.size(0)).narrow(1, 2, x.numel() / x.size(0));
        wide.copy_(x.flatten(1));
        strided.back() = wide.unflatten(1, x.sizes().slice(1));
      }
      const auto dense_out = outputs(fused(kind), in, at::kFloat, device);
      EXPECT_TRUE(same(fused(kind)(strided), dense_out[0]));
      at::Tensor turned = in[0].transpose(1, 2).contiguous().transpose(1, 2).detach();
      turned.requires_grad_(true);
      const at::Tensor out = fused(kind)({turned, strided[1], strided[2], strided[3]});
      at::manual_seed(4);
      const at::Tensor c = normals(out.sizes()).to(device);
      EXPECT_TRUE(same(torch::autograd::grad({(out * c).sum()}, {turned})[0], dense_out[1]));
    }
}

// Wider rows than the CUDA kernel holds in a warp.
TEST(SkipNormOperator, TakesWideRows) {
  for (const at::Device device : devices())
    expect_as_exact(fused(Kind::layer), plain(Kind::layer), operands({Kind::layer, 2, 3, 300, true}), device);
}

}  // namespace
}  // namespace rankscope
