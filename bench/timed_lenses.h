// Every lens with a clock around it: what it costs within the scan, to more digits than the difference of two
// passes has. On a device the clock waits for it before and after, so that the time is the lens's own.
#pragma once

#include <array>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bench/graph.h"
#include "lenses/lens.h"

namespace rankscope {

/// Count the processor's time instead of the clock's: ratios then hold beside other work.
inline bool processor_time = false;

inline double seconds(const std::function<void()>& call) {
  const auto now = [] {
    timespec t{};
    clock_gettime(processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  call();
  return now() - start;
}

constexpr size_t kMostLenses = 32;
inline std::array<double, kMostLenses> lens_seconds;
inline std::string lens_device = "cpu";

class Timed : public Measurement {
 public:
  Timed(std::unique_ptr<Measurement> inner, double& total) : inner_(std::move(inner)), total_(total) {}
  at::Tensor whole(const WholeView& v) override {
    return timed([&] { return inner_->whole(v); });
  }
  at::Tensor tile(const TileView& v) override {
    return timed([&] { return inner_->tile(v); });
  }
  at::Tensor factored(const FactoredView& v) override {
    return timed([&] { return inner_->factored(v); });
  }
  void weights(const WeightsView& v) override {
    timed([&] {
      inner_->weights(v);
      return at::Tensor();
    });
  }
  at::Tensor finish() override {
    return timed([&] { return inner_->finish(); });
  }

 private:
  at::Tensor timed(const std::function<at::Tensor()>& call) {
    at::Tensor out;
    rankscope::finish(lens_device);
    total_ += seconds([&] {
      out = call();
      rankscope::finish(lens_device);
    });
    return out;
  }

  std::unique_ptr<Measurement> inner_;
  double& total_;
};

template <size_t I>
std::unique_ptr<Measurement> start_timed(const LensContext& context) {
  return std::make_unique<Timed>(lenses()[I]->start(context), lens_seconds[I]);
}

/// All of them, in the order of lenses(); their times go to lens_seconds, which this sets to zero.
inline std::vector<Lens> timed_lenses(const std::string& device) {
  if (lenses().size() > kMostLenses) throw Error("the bench knows fewer lenses than there are");
  lens_device = device;
  lens_seconds.fill(0);
  std::vector<Lens> out;
  for (const Lens* lens : lenses()) out.push_back(*lens);
  [&]<size_t... I>(std::index_sequence<I...>) {
    ((I < out.size() ? void(out[I].start = start_timed<I>) : void()), ...);
  }
  (std::make_index_sequence<kMostLenses>());
  return out;
}

}  // namespace rankscope
