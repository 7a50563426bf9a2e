#include "tensors/device_choice.h"

#include <fmt/format.h>

#include "base/error.h"

namespace rankscope {
namespace {

std::string version_of(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

Error missing(const CudaFound& found) {
  using enum CudaFound::Fault;
  switch (found.fault) {
    case not_built:
      return Error("this LibTorch was built without CUDA")
          .hint("--device cpu, or build with TORCH=DIR of a CUDA LibTorch");
    case no_driver:
      return Error("no NVIDIA driver is loaded").hint("install one (nvidia-smi shows it), or --device cpu");
    case old_driver:
      return Error(fmt::format("the NVIDIA driver is too old: it knows CUDA {}, this LibTorch needs {}",
                               version_of(found.driver), version_of(found.needed)))
          .hint("a newer driver, a LibTorch of an older CUDA, or --device cpu");
    case no_device:
      return Error("there is no CUDA device").hint("check CUDA_VISIBLE_DEVICES, or --device cpu");
    case none:
    case other:
      break;
  }
  return Error(fmt::format("CUDA cannot be used: {}", printable(found.said)))
      .hint("nvidia-smi shows whether the driver works; --device cpu does without");
}

}  // namespace

at::Device choose_device(const std::string& name, const CudaFound& found) {
  if (name == "cpu") return at::Device(at::kCPU);
  const bool numbered = name.size() > 5 && name.size() < 8 && name.rfind("cuda:", 0) == 0 &&
                        name.find_first_not_of("0123456789", 5) == std::string::npos;
  if (name != "cuda" && !numbered) throw unknown_name("device", name, {"cpu", "cuda", "cuda:0"});
  if (found.devices == 0) throw missing(found).in("--device " + name);
  const int number = numbered ? std::stoi(name.substr(5)) : 0;
  if (number >= found.devices)
    throw Error(
        fmt::format("there is no CUDA device {}: {} counted from 0", number,
                    found.devices == 1 ? "there is one," : fmt::format("there are {},", found.devices)))
        .in("--device " + name)
        .hint(found.devices == 1 ? "--device cuda" : fmt::format("--device cuda:{}", found.devices - 1));
  return numbered ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(number)) : at::Device(at::kCUDA);
}

}  // namespace rankscope
