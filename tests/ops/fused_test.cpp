#include "ops/fused.h"

#include "ops/ops_support.h"

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

}  // namespace
}  // namespace rankscope
