#include "ops/linear.h"

#include "ops/ops_support.h"

namespace rankscope {
namespace {

at::Tensor product(const std::vector<at::Tensor>& in) { return linear(in[0], in[1], in[2]); }
at::Tensor written_out(const std::vector<at::Tensor>& in) {
  const at::Tensor y = at::matmul(in[0], in[1].transpose(-1, -2));
  return in[2].defined() ? y + in[2].unsqueeze(-2) : y;
}

TEST(Linear, MultipliesRowsOfWAndAddsTheBias) {
  const at::Tensor x = at::tensor({1.0f, 2.0f}).view({1, 2}),
                   W = at::tensor({3.0f, 4.0f, 5.0f, 6.0f}).view({2, 2});
  const at::Tensor y = linear(x, W, at::tensor({10.0f, 20.0f}));
  EXPECT_TRUE(at::equal(y, at::tensor({21.0f, 37.0f}).view({1, 2}))) << y;
}

TEST(Linear, IsTheProductWithItsBias) {
  for (const at::Device device : devices())
    for (const auto& [trials, rows, in, out] :
         {std::array<int64_t, 4>{0, 5, 8, 12}, {2, 7, 8, 24}, {3, 1, 1, 3}, {2, 9, 12, 5}, {2, 0, 4, 8}})
      for (const bool bias : {true, false}) {
        at::manual_seed(3);
        const auto make = [&](std::vector<int64_t> shape) {
          if (trials > 0) shape.insert(shape.begin(), trials);
          return normals(shape);
        };
        const std::vector<at::Tensor> operands{make({rows, in}), make({out, in}),
                                               bias ? make({out}) : at::Tensor()};
        expect_as_exact(product, written_out, operands, device);
        expect_derivative(product, operands);
      }
}

}  // namespace
}  // namespace rankscope
