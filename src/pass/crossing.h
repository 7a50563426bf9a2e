// What has to reach the host. Numbers stay on the device they were made on until the end of a layer; then all
// of them go across in one copy, and are read while the next layer runs. Nobody else waits for the device.
// Where some are made beside the layers that follow (tensors/device.h), their layer's leave a few layers
// later.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/tensor_fwd.h"
#include "tensors/device.h"

namespace rankscope {

class Crossing {
 public:
  using Read = std::function<void(const double*)>;

  /// `late`: what lies on the host already is read a turn later too, as if it came from a device.
  explicit Crossing(bool late = false) : late_(late) {}

  /// `read` is called with the tensor's numbers, row by row, in the order of these calls. `made`: the point
  /// at which numbers that are made on a stream beside this one are there.
  void add(const at::Tensor& numbers, Read read, DeviceEvent made = {});
  /// Called in the same order, for those who wait for numbers before them.
  void then(std::function<void()> call);
  /// Keeps what those calls refer to alive until they are made.
  void keep(std::shared_ptr<const void> owner);

  /// Sends what was added since the last turn, or keeps it for a few where some of it is made beside, and
  /// reads what was sent before; this turn's too where nothing of it came from a device.
  void turn();
  /// Sends and reads everything.
  void finish();

  bool late(const at::Tensor& made) const;  // whether a number is read only while the next layer runs

 private:
  struct Item {
    at::Tensor numbers;  // undefined: nothing to read
    Read read;
    DeviceEvent made = {};
    int64_t place = -1;  // in the shipment's copy; -1: the tensor itself is on the host
  };
  struct Shipment {
    std::vector<Item> items;
    std::vector<std::shared_ptr<const void>> owners;
    at::Tensor copy;  // on the host, defined where something came from a device
    DeviceEvent arrived;
  };
  void send(Shipment shipment);
  void read(size_t all_but);

  bool late_;
  Shipment pending_;
  std::deque<Shipment> waiting_, sent_;
};

}  // namespace rankscope
