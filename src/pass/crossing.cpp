#include "pass/crossing.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace rankscope {
namespace {

/// How many layers may run while numbers are made beside them: enough to fill a device with the matrices of a
/// few samples, and little memory is held.
constexpr size_t kLayersBeside = 4;

}  // namespace

bool Crossing::late(const at::Tensor& made) const { return late_ || !made.is_cpu(); }

void Crossing::add(const at::Tensor& numbers, Read read, DeviceEvent made) {
  pending_.items.push_back({numbers, std::move(read), std::move(made)});
}

void Crossing::then(std::function<void()> call) {
  pending_.items.push_back({{}, [call = std::move(call)](const double*) { call(); }});
}

void Crossing::keep(std::shared_ptr<const void> owner) { pending_.owners.push_back(std::move(owner)); }

void Crossing::send(Shipment shipment) {
  std::vector<at::Tensor> flat;
  int64_t size = 0;
  for (Item& item : shipment.items) {
    if (!item.numbers.defined() || item.numbers.is_cpu()) continue;
    item.made.hold_back(item.numbers);
    used_here(item.numbers);
    flat.push_back(item.numbers.to(at::kDouble).reshape(-1));
    item.place = size;
    size += flat.back().numel();
    item.numbers.reset();
  }
  if (!flat.empty()) {
    shipment.copy = at::empty({size}, at::TensorOptions().dtype(at::kDouble).pinned_memory(true));
    shipment.copy.copy_(at::cat(flat), /*non_blocking=*/true);
    shipment.arrived.record(flat.front());
  }
  sent_.push_back(std::move(shipment));
}

void Crossing::read(size_t all_but) {
  while (sent_.size() > all_but) {
    const Shipment shipment = std::move(sent_.front());
    sent_.pop_front();
    if (shipment.copy.defined()) shipment.arrived.wait();
    for (const Item& item : shipment.items) {
      const at::Tensor here =
          item.numbers.defined() ? item.numbers.to(at::kDouble).contiguous() : at::Tensor();
      item.read(here.defined()    ? here.data_ptr<double>()
                : item.place >= 0 ? shipment.copy.data_ptr<double>() + item.place
                                  : nullptr);
    }
  }
}

void Crossing::turn() {
  const auto made_beside = [](const Item& item) { return item.made.recorded(); };
  waiting_.push_back(std::exchange(pending_, {}));
  while (waiting_.size() > kLayersBeside ||
         (!waiting_.empty() && std::ranges::none_of(waiting_.front().items, made_beside))) {
    send(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  if (!sent_.empty()) read(late_ || sent_.back().copy.defined() ? 1 : 0);
}

void Crossing::finish() {
  waiting_.push_back(std::exchange(pending_, {}));
  for (Shipment& shipment : std::exchange(waiting_, {})) send(std::move(shipment));
  read(0);
}

}  // namespace rankscope
