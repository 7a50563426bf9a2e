#include "ops/projected_attention.h"

#include <ATen/Context.h>

#include "ops/ops_support.h"

namespace rankscope {
namespace {

struct Case {
  int64_t sequences, tokens, width, columns;
  std::vector<int32_t> heads;
};

HeadShape shape_of(const Case& c) {
  HeadShape shape{.heads = c.heads, .scale = {}, .width_qk = c.columns, .width_v = c.columns};
  for (const int32_t heads : c.heads)
    shape.scale.push_back(1 / std::sqrt(static_cast<float>(c.columns) / static_cast<float>(heads)));
  return shape;
}

// A product, and attention written out.
at::Tensor written_out(const std::vector<at::Tensor>& in, const Case& c) {
  at::Tensor qkv = at::matmul(in[0], in[1].transpose(-1, -2));
  if (in[2].defined()) qkv = qkv + in[2].unsqueeze(-2);
  return small_attention_reference(qkv.narrow(-1, 0, c.columns), qkv.narrow(-1, c.columns, c.columns),
                                   qkv.narrow(-1, 2 * c.columns, c.columns), c.tokens, c.tokens, shape_of(c));
}

std::vector<at::Tensor> operands(const Case& c, bool bias) {
  at::manual_seed(3);
  const auto trials = static_cast<int64_t>(c.heads.size());
  return {normals({trials, c.sequences * c.tokens, c.width}),
          0.15 * normals({trials, 3 * c.columns, c.width}),
          bias ? normals({trials, 3 * c.columns}) : at::Tensor()};
}

void expect_attention(const Case& c, bool bias, at::Device device) {
  const Operator ours = [&](const std::vector<at::Tensor>& in) {
    return projected_self_attention(in[0], in[1], in[2], c.tokens, shape_of(c));
  };
  expect_as_exact(
      ours, [&](const auto& in) { return written_out(in, c); }, operands(c, bias), device);
}

TEST(ProjectedAttention, IsAttentionOfTheProjection) {
  for (const at::Device device : devices())
    for (const bool bias : {true, false}) {
      expect_attention({3, 7, 5, 12, {3, 12}}, bias, device);
      expect_attention({2, 16, 64, 64, {8, 1, 64}}, bias, device);
    }
}

TEST(ProjectedAttention, GradientsAreDerivatives) {
  const Case c{2, 4, 6, 8, {2, 8}};
  for (const bool bias : {true, false})
    expect_derivative(
        [&](const std::vector<at::Tensor>& in) {
          return projected_self_attention(in[0], in[1], in[2], c.tokens, shape_of(c));
        },
        operands(c, bias));
}

TEST(ProjectedAttention, TakesAnEmptyBatch) {
  const Case c{0, 16, 64, 64, {8, 4}};
  const auto in = operands(c, true);
  EXPECT_EQ(projected_self_attention(in[0], in[1], in[2], 16, shape_of(c)).sizes(),
            at::IntArrayRef({2, 0, 64}));
}

class Tf32 {
 public:
  Tf32() { at::globalContext().setFloat32MatmulPrecision("high"); }
  ~Tf32() { at::globalContext().setFloat32MatmulPrecision("highest"); }
};

// Heads of every width in one stack: wide ones are fused, narrow ones go by way of memory.
TEST(ProjectedAttention, IsAsExactAsTheLibrarysProductsInTf32) {
  const Tf32 allowed;
  for (const at::Device device : devices()) {
    if (!device.is_cuda()) continue;
    for (const bool bias : {true, false}) {
      expect_attention({5, 16, 64, 64, {1, 2, 4, 8}}, bias, device);
      expect_attention({40, 16, 64, 128, {128, 16, 64, 2, 4, 32}}, bias, device);
    }
  }
}

// The same numbers one float behind where a vector starts; so is the gradient of what goes through here.
at::Tensor shifted(const at::Tensor& x) {
  return at::cat({at::zeros({1}, x.options()), x.flatten()}).narrow(0, 1, x.numel()).view_as(x);
}

TEST(ProjectedAttention, TakesOperandsThatStartAnywhere) {
  const Tf32 allowed;
  const Case c{3, 16, 64, 64, {8}};
  const Operator ours = [&](const std::vector<at::Tensor>& in) {
    return shifted(
        projected_self_attention(shifted(in[0]), shifted(in[1]), shifted(in[2]), c.tokens, shape_of(c)));
  };
  for (const at::Device device : devices())
    expect_as_exact(
        ours, [&](const auto& in) { return written_out(in, c); }, operands(c, true), device);
}

TEST(ProjectedAttention, LeavesOutTheTokensGradientOnRequest) {
  const Tf32 allowed;
  for (const at::Device device : devices()) {
    const Case c{2, 16, 64, 64, {8, 1}};
    const auto all = operands(c, true);
    const auto gradients = [&](bool wanted) {
      const at::Tensor x = all[0].to(device).requires_grad_(wanted),
                       W = all[1].to(device).requires_grad_(true);
      const at::Tensor z = projected_self_attention(x, W, all[2].to(device), 16, shape_of(c));
      return torch::autograd::grad({z.sum()}, {W})[0];
    };
    EXPECT_TRUE(at::equal(gradients(true), gradients(false))) << device;
  }
}

}  // namespace
}  // namespace rankscope
