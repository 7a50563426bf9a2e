// rankscope operator from the inside.
#include "paths/operator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "scan/fixture_request.h"

namespace rankscope {
namespace {

OperatorRequest on_fixture(const std::string& name) {
  OperatorRequest r;
  r.scan = test::random_tokens_through(name, 2, 8);
  r.top = 4;
  return r;
}

double value(const OperatorResult& r, const char* metric) {
  const Row* row = r.scan.table.find("full", metric, -1);
  return row == nullptr ? kNone : row->value;
}

TEST(OperatorReadings, AreCompleteForModelsWithAndWithoutHeads) {
  for (const char* name : {"bert", "gpt2", "llama", "xlnet", "vit"}) {
    const OperatorRequest request = on_fixture(name);
    const OperatorResult r = measure_operator(request, {});
    EXPECT_LT(value(r, "completeness"), 1e-10) << name;
    EXPECT_LE(value(r, "sigma_1_residual"), request.tolerance) << name;  // what it is asked to reach
    EXPECT_GE(value(r, "sigma_1"), value(r, "sigma_2")) << name;
    EXPECT_GE(value(r, "operator_stable_rank"), 1.0) << name;
    EXPECT_GT(value(r, "jacobian_distance"), 0.0) << name;
    ASSERT_EQ(r.maps.size(), 2u);
    EXPECT_EQ(r.maps[0].in.size(), static_cast<size_t>(r.maps[0].tokens * r.maps[0].tokens));
  }
}

TEST(OperatorReadings, OfACausalModelHaveNoFuture) {
  const OperatorResult r = measure_operator(on_fixture("gpt2"), {});
  const TokenMap& m = r.maps[0];
  for (int64_t i = 0; i < m.tokens; ++i)
    for (int64_t j = i + 1; j < m.tokens; ++j) EXPECT_EQ(m.in[static_cast<size_t>(i * m.tokens + j)], 0.0);
}

TEST(OperatorReadings, PoolAWideMapForAPageWithoutLosingAnyOfIt) {
  OperatorRequest request = on_fixture("llama-rope3");  // made for more than 96 tokens
  request.scan.samples = 1;
  request.scan.max_length = 100;
  request.scan.show = true;
  request.jacobian_probes = 0;
  const OperatorResult r = measure_operator(request, {});
  const TokenMap& m = r.maps[0];
  ASSERT_EQ(m.tokens, 100);
  EXPECT_EQ(r.scan.manifest["token_map"]["tokens"], 100);
  ASSERT_EQ(r.scan.arrays.size(), 2u);
  const NamedArray& pooled = r.scan.arrays[1];
  EXPECT_EQ(pooled.name, "operator.map.in_out");
  ASSERT_EQ(pooled.shape, (std::vector<int64_t>{96, 96}));
  double sum = 0, size = 0, whole = 0;
  for (int64_t a = 0; a < 96; ++a)
    for (int64_t b = 0; b < 96; ++b)  // a mean over outputs, so that many of them
      sum += static_cast<double>((a + 1) * 100 / 96 - a * 100 / 96) *
             static_cast<double>(pooled.values[static_cast<size_t>(a * 96 + b)]);
  for (const double v : m.in_out) whole += v, size += std::fabs(v);
  EXPECT_NEAR(sum, whole, 1e-7 * size);  // kept as float32
}

TEST(OperatorReadings, NumbersThatCannotBeAreRefusedBeforeTheModelIsRead) {
  const auto fault = [](auto set) -> std::string {
    OperatorRequest request;
    request.scan.model = "/nowhere";
    set(request);
    try {
      measure_operator(request, {});
    } catch (const Error& e) {
      return e.message();
    }
    return "";
  };
  EXPECT_EQ(fault([](auto& r) { r.top = 0; }), "--top should be from 1 to 1000, not 0");
  EXPECT_EQ(fault([](auto& r) { r.top = -1; }), "--top should be from 1 to 1000, not -1");
  EXPECT_EQ(fault([](auto& r) { r.applications = 0; }), "--applications should be from 2 to 1000000, not 0");
  EXPECT_EQ(fault([](auto& r) { r.probes = 2; }), "--probes should be from 3 to 100000, not 2");
  EXPECT_EQ(fault([](auto& r) { r.jacobian_probes = -1; }), "--jacobian should be from 0 to 100000, not -1");
  EXPECT_EQ(fault([](auto& r) { r.tolerance = -1; }), "--tolerance should be a number of at least 0, not -1");
  EXPECT_EQ(fault([](auto& r) { r.tolerance = std::nan(""); }),
            "--tolerance should be a number of at least 0, not nan");
  EXPECT_EQ(fault([](auto&) {}).find("--"), std::string::npos);  // the model, then
}

TEST(OperatorReadings, LeaveTheJacobianOutInFloat32AndSaySo) {
  OperatorRequest request = on_fixture("bert");
  request.scan.dtype = "float32";
  request.map = false;
  const OperatorResult r = measure_operator(request, {});
  EXPECT_TRUE(std::isnan(value(r, "jacobian_distance")));
  EXPECT_TRUE(r.maps.empty());
  ASSERT_FALSE(r.scan.notes.empty());
  EXPECT_NE(r.scan.notes[0].find("--dtype float64"), std::string::npos);
}

}  // namespace
}  // namespace rankscope
