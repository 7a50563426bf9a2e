#include "ops/linear.h"

#include "ops/ops_support.h"

namespace rankscope {
namespace {

at::Tensor product(const std::vector<at::Tensor>& in) { return linear(in[0], in[1], in[2]); }
at::Tensor written_out(const std::vector<at::Tensor>& in) {
  const at::Tensor y = at::matmul(in[0], in[1].transpose(-1, -2));
  return in[2].defined() ? y + in[2].unsqueeze(-2) : y;
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
