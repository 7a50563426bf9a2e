#include "ops/fused.h"

#include "base/error.h"
#include "ops/mlp.h"
#include "ops/ops_support.h"
#include "ops/skip_norm.h"
#include "ops/small_attention.h"
#include "ops/squared_error.h"

namespace rankscope {
namespace {

TEST(Fused, OnlyWhatStartsBetweenTwoVectorsIsCopied) {
  const at::Tensor all = at::arange(64, at::kFloat);
  for (const int64_t start : {0, 1, 2, 3, 4, 8}) {
    const at::Tensor x = all.narrow(0, start, 24), found = aligned(x);
    EXPECT_TRUE(at::equal(found, x)) << start;
    EXPECT_EQ(found.data_ptr() == x.data_ptr(), start % 4 == 0) << start;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(found.data_ptr()) % 16, 0u) << start;
  }
  EXPECT_EQ(aligned(at::empty({0})).numel(), 0);
}

// Autograd takes what a kernel writes for a constant: the rest of the graph would give a number, and a wrong
// one.
TEST(Fused, ASecondDerivativeIsRefusedAndNotGuessed) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({8, 6}, at::kDouble).requires_grad_(true),
                   W = at::randn({6, 6}, at::kDouble).requires_grad_(true), one = at::ones({6}, at::kDouble),
                   none;
  const HeadShape shape{.heads = {2}, .scale = {1.0f}, .width_qk = 2, .width_v = 2};
  const HeadShape wide{.heads = {2}, .scale = {1.0f}, .width_qk = 6, .width_v = 6};
  const std::vector<std::function<at::Tensor()>> operators{
      [&] { return small_self_attention(at::mm(x, W), 4, shape); },
      [&] { return small_attention(at::mm(x, W), x, x, 4, 4, wide); },
      [&] { return skip_norm(SkipNorm::Kind::rms, at::mm(x, W), none, one, none); },
      [&] { return mlp(at::mm(x, W), W, none, W, none); },
      [&] { return squared_error_sum(at::mm(x, W), x, 1.0, false); }};
  for (size_t i = 0; i < operators.size(); ++i) {
    const at::Tensor y = operators[i]().square().sum();
    const auto slope = [&](bool graph) { return torch::autograd::grad({y}, {x}, {}, true, graph)[0]; };
    EXPECT_FALSE(slope(false).requires_grad()) << i;
    if (!fused_kernels()) {  // the plain compositions have them all
      EXPECT_TRUE(torch::autograd::grad({slope(true).square().sum()}, {W})[0].defined()) << i;
      continue;
    }
    try {
      slope(true);
      ADD_FAILURE() << i << " was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(),
                "the fused kernels have no second derivative, and a graph of the first was asked for");
      EXPECT_EQ(error.advice(), "RANKSCOPE_KERNELS=reference");
    }
  }
}

}  // namespace
}  // namespace rankscope
