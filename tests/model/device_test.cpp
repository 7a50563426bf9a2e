// Which device a word means: what is not there is refused in one line that says what to do.
#include "tensors/device_choice.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensors/device.h"

namespace rankscope {
namespace {

struct Refusal {
  std::string message, place, advice;
};

Refusal refused(const std::string& name, const CudaFound& found) {
  try {
    choose_device(name, found);
  } catch (const Error& e) {
    return {e.message(), e.place(), e.advice()};
  }
  return {};
}

using Fault = CudaFound::Fault;

TEST(Device, IsTheOneNamed) {
  const CudaFound two{Fault::none, 2};
  EXPECT_EQ(choose_device("cpu", {}), at::Device(at::kCPU));
  EXPECT_EQ(choose_device("cuda", two), at::Device(at::kCUDA));
  EXPECT_EQ(choose_device("cuda:1", two), at::Device(at::kCUDA, 1));
}

TEST(Device, ThatIsNotThereIsRefusedWithTheLastThatIs) {
  const Refusal one = refused("cuda:7", {Fault::none, 1});
  EXPECT_EQ(one.message, "there is no CUDA device 7: there is one, counted from 0");
  EXPECT_EQ(one.place, "--device cuda:7");
  EXPECT_EQ(one.advice, "--device cuda");
  const Refusal four = refused("cuda:7", {Fault::none, 4});
  EXPECT_EQ(four.message, "there is no CUDA device 7: there are 4, counted from 0");
  EXPECT_EQ(four.advice, "--device cuda:3");
}

TEST(Device, OfNoKnownKindIsAnsweredWithTheNearest) {
  for (const char* name : {"gpu", "cuda:", "cuda:x", "cuda:1234", "cuda7"})
    EXPECT_EQ(refused(name, {Fault::none, 2}).message, "there is no device \"" + std::string(name) + "\"");
}

TEST(Device, SaysWhyThereIsNoCuda) {
  EXPECT_EQ(refused("cuda", {}).message, "this LibTorch was built without CUDA");
  EXPECT_EQ(refused("cuda", {Fault::no_driver}).message, "no NVIDIA driver is loaded");
  EXPECT_EQ(refused("cuda", {Fault::old_driver, 0, 12020, 13000}).message,
            "the NVIDIA driver is too old: it knows CUDA 12.2, this LibTorch needs 13.0");
  EXPECT_EQ(refused("cuda:0", {Fault::no_device}).message, "there is no CUDA device");
  EXPECT_EQ(refused("cuda", {Fault::other, 0, 0, 0, "unknown error"}).message,
            "CUDA cannot be used: unknown error");
  for (const Fault fault :
       {Fault::not_built, Fault::no_driver, Fault::old_driver, Fault::no_device, Fault::other}) {
    EXPECT_EQ(refused("cuda", {fault}).place, "--device cuda");
    EXPECT_NE(refused("cuda", {fault}).advice.find("--device cpu"), std::string::npos);
  }
}

TEST(Device, GivesNoMoreMemoryThanItMay) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  constexpr int64_t kLimit = int64_t{64} << 20;
  const auto options = at::TensorOptions().dtype(at::kByte).device(at::kCUDA);
  release_device_memory();
  limit_device_memory("cuda", kLimit);
  EXPECT_LE(device_memory("cuda").free, kLimit);
  EXPECT_THROW(at::empty({2 * kLimit}, options), c10::OutOfMemoryError);
  limit_device_memory("cuda", 0);
  EXPECT_EQ(at::empty({2 * kLimit}, options).numel(), 2 * kLimit);
  EXPECT_GT(device_memory("cuda").total, 0);
  EXPECT_EQ(device_memory("cpu").total, 0);
}

}  // namespace
}  // namespace rankscope
