// Numbers on their way to the host: in order, whole, and read late where they come from a device.
#include "pass/crossing.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace rankscope {
namespace {

// Notes the first `count` numbers it is handed.
Crossing::Read into(std::vector<double>& out, int64_t count) {
  return [&out, count](const double* values) { out.insert(out.end(), values, values + count); };
}

TEST(Crossing, ReadsEveryNumberInOrderRowByRow) {
  for (const bool late : {false, true}) {
    Crossing crossing(late);
    std::vector<double> out;
    crossing.add(at::arange(6, at::kFloat).view({2, 3}).t(), into(out, 6));  // not contiguous, not double
    crossing.then([&] { out.push_back(-1); });
    crossing.add(at::tensor({7.5}, at::kDouble), into(out, 1));
    crossing.finish();
    EXPECT_EQ(out, (std::vector<double>{0, 3, 1, 4, 2, 5, -1, 7.5}));
  }
}

TEST(Crossing, ReadsWhatIsOnTheHostInItsOwnTurnAndTheRestInTheNext) {
  for (const bool late : {false, true}) {
    Crossing crossing(late);
    const at::Tensor x = at::ones({1}, at::kDouble);
    EXPECT_EQ(crossing.late(x), late);
    std::vector<double> out;
    crossing.add(x, into(out, 1));
    EXPECT_TRUE(out.empty());
    crossing.turn();
    EXPECT_EQ(out.size(), late ? 0u : 1u);
    crossing.add(x, into(out, 1));
    crossing.turn();
    EXPECT_EQ(out.size(), late ? 1u : 2u);
    crossing.finish();
    EXPECT_EQ(out.size(), 2u);
  }
}

TEST(Crossing, KeepsOwnersUntilTheirNumbersAreRead) {
  Crossing crossing(true);
  auto owner = std::make_shared<int>(3);
  const std::weak_ptr<int> alive = owner;
  int read = 0;
  crossing.then([value = owner.get(), &read] { read = *value; });
  crossing.keep(std::move(owner));
  crossing.turn();
  EXPECT_FALSE(alive.expired());
  crossing.turn();
  EXPECT_EQ(read, 3);
  EXPECT_TRUE(alive.expired());
}

TEST(Crossing, BringsEveryNumberFromADeviceOneTurnLate) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  Crossing crossing;
  std::vector<double> out;
  const at::Tensor there = at::arange(5, at::TensorOptions().dtype(at::kFloat).device(at::kCUDA));
  EXPECT_TRUE(crossing.late(there));
  crossing.add(there, into(out, 5));
  crossing.add(at::tensor({7.0}, at::kDouble), into(out, 1));  // from the host, in its place
  crossing.add(there.sum(), into(out, 1));
  crossing.turn();
  EXPECT_TRUE(out.empty());
  crossing.finish();
  EXPECT_EQ(out, (std::vector<double>{0, 1, 2, 3, 4, 7, 10}));
}

}  // namespace
}  // namespace rankscope
