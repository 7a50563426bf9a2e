#include "cli/parity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rankscope {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

LayerError layer(const char* name, double largest, double magnitude = 1) {
  return {name, largest, largest, magnitude};
}

// Wherever it stands, and whatever comes behind it.
TEST(Parity, WhatIsNotANumberIsNeverAgreement) {
  const std::vector<std::vector<LayerError>> all{
      {layer("bad", kNan), layer("b", 1e-9), layer("c", 1e-9)},
      {layer("a", 1e-9), layer("bad", kNan), layer("c", 1e-9)},
      {layer("a", 1e-9), layer("b", 1e-9), layer("bad", kNan)},
      {layer("a", 1e-9), layer("bad", kInf), layer("c", 1e-9)},
      {layer("a", 1e-9), layer("bad", kInf, kInf), layer("c", 1e-9)},
      {layer("a", 1e-9), layer("bad", kNan, 0), layer("c", 0.5)},
      {layer("bad", kNan), layer("later", kNan), layer("c", 1e-9)}};
  for (const std::vector<LayerError>& errors : all) {
    EXPECT_FALSE(all_pass(errors, 1));
    EXPECT_EQ(worst_of(errors).tensor, "bad");
    const Json said = parity_of(errors, 1, "there");
    EXPECT_EQ(said["agrees"], false);
    EXPECT_EQ(said["at"], "bad");
    for (size_t i = 0; i < errors.size(); ++i)
      EXPECT_EQ(said["layers"][i]["pass"], std::isfinite(errors[i].relative())) << errors[i].tensor;
  }
}

TEST(Parity, TheLargestOfFiniteErrorsIsTheWorst) {
  const std::vector<LayerError> errors{layer("a", 1e-9), layer("b", 1e-3), layer("c", 1e-6)};
  EXPECT_EQ(worst_of(errors).tensor, "b");
  EXPECT_TRUE(all_pass(errors, 1e-3));
  EXPECT_FALSE(all_pass(errors, 1e-4));
}

}  // namespace
}  // namespace rankscope
