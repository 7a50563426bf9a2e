// TF32 only where it is asked for, on a device that has it, with its error beside it.
#include "pass/precision.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/random_source.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

std::string refusal(const std::string& precision, const std::string& device, const std::string& dtype) {
  ScanRequest request;
  request.precision = precision;
  request.device = device;
  request.dtype = dtype;
  try {
    check_precision(request);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(ScanPrecision, IsRefusedWhereThereIsNone) {
  EXPECT_EQ(refusal("float32", "cpu", "float32"), "");
  EXPECT_EQ(refusal("tf32", "cuda", "float32"), "");
  EXPECT_EQ(refusal("tf31", "cuda", "float32"), "there is no precision \"tf31\"");
  EXPECT_EQ(refusal("tf32", "cpu", "float32"), "TF32 is an arithmetic of GPUs");
  EXPECT_EQ(refusal("tf32", "cuda", "float64"), "TF32 rounds float32 products: float64 has none");
}

TEST(ScanPrecision, TheErrorIsThatOfTheHiddenStates) {
  const ModelSpec spec = test::tiny_spec();
  const Batch batch = make_batches(test::random_samples({5, 9}, 50), spec, 8).front();
  const auto source = random_source(spec, 1, "float32", "cpu");
  EXPECT_EQ(tf32_error(spec, *source, batch), 0.0);  // the CPU has no TF32: the same bits twice
  allow_tf32(false);
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  const auto there = random_source(spec, 1, "float32", "cuda");
  const double error = tf32_error(spec, *there, batch);
  allow_tf32(false);
  // TF32 keeps 10 bits of a factor; three blocks of products of at most 40 terms, each below 64 roundings.
  EXPECT_GT(error, 0x1p-24);
  EXPECT_LT(error, 64 * 0x1p-11);
}

TEST(ScanPrecision, TheManifestSaysIt) {
  const ModelSpec spec = test::tiny_spec();
  const Batch batch = make_batches(test::random_samples({5}, 50), spec, 8).front();
  const auto source = random_source(spec, 1, "float32", "cpu");
  ScanRequest request;
  Json manifest;
  add_precision(manifest, request, spec, *source, batch);
  EXPECT_EQ(manifest, (Json{{"precision", "float32"}}));
  request.precision = "tf32";
  add_precision(manifest, request, spec, *source, batch);
  allow_tf32(false);
  EXPECT_EQ(manifest, (Json{{"precision", "tf32"}, {"precision_error", 0.0}}));
}

}  // namespace
}  // namespace rankscope
