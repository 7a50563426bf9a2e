#include "ops/neighbours.h"

#include "ops/ops_support.h"

namespace rankscope {
namespace {

TEST(UnitNeighbours, AreThePointsOfExtremeProduct) {
  for (const at::Device device : devices())
    for (const double sign : {1.0, -1.0})
      for (const int64_t queries : {0, 1, 5}) {
        at::manual_seed(3);
        const at::Tensor points = normals({2, 3, 9, 20}).to(device);
        const at::Tensor asks = queries > 0 ? normals({2, 3, queries, 20}).to(device) : at::Tensor();
        const Neighbours ours = unit_neighbours(points, asks, sign),
                         plain = unit_neighbours_reference(
                             points.to(at::kCPU, at::kDouble),
                             asks.defined() ? asks.to(at::kCPU, at::kDouble) : asks, sign);
        EXPECT_LT(distance(ours.points, plain.points), 3e-7);
        EXPECT_EQ(ours.asks.defined(), queries > 0);
        if (queries > 0) {
          EXPECT_LT(distance(ours.asks, plain.asks), 3e-7);
        }
        EXPECT_LT(distance(ours.target, plain.target), 3e-7);
      }
}

}  // namespace
}  // namespace rankscope
