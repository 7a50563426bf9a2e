#include "ops/squared_error.h"

#include "ops/ops_support.h"

namespace rankscope {
namespace {

struct Case {
  std::vector<int64_t> shape;
  bool stacked;
};

const std::vector<Case> kCases{{{5, 16, 64}, false}, {{3, 5, 7, 13}, true}, {{1, 1}, false}, {{2, 1}, true},
                               {{2, 0, 4}, true},    {{2, 300, 64}, true},  {{7}, true},     {{}, false}};
constexpr double kWeight = 0.03;

TEST(SquaredErrorSum, IsAsExactAsThePlainComposition) {
  for (const at::Device device : devices())
    for (const Case& c : kCases) {
      at::manual_seed(3);
      const at::Tensor answers = normals(c.shape), target = normals(c.shape);
      const auto with = [&](auto function) {
        return [&, function](const std::vector<at::Tensor>& in) {
          return function(in[0], target.to(in[0].device(), in[0].scalar_type()), kWeight, c.stacked);
        };
      };
      expect_as_exact(with(squared_error_sum), with(squared_error_sum_reference), {answers}, device);
    }
}

TEST(SquaredErrorSum, GradientsAreDerivatives) {
  for (const Case& c : kCases) {
    at::manual_seed(3);
    const at::Tensor answers = normals(c.shape), target = normals(c.shape).to(at::kDouble);
    expect_derivative(
        [&](const std::vector<at::Tensor>& in) {
          return squared_error_sum(in[0].to(at::kDouble), target, kWeight, c.stacked);
        },
        {answers});
  }
}

TEST(SquaredErrorSum, StridedAnswersGiveTheSame) {
  for (const at::Device device : devices()) {
    at::manual_seed(3);
    const at::Tensor wide = normals({2, 9, 20}).to(device), target = normals({2, 9, 6}).to(device);
    const at::Tensor part = wide.narrow(2, 5, 6);
    EXPECT_TRUE(squared_error_sum(part, target, kWeight, true)
                    .equal(squared_error_sum(part.contiguous(), target, kWeight, true)));
  }
}

}  // namespace
}  // namespace rankscope
