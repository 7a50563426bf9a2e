#include "pass/crossing.h"

#include <ATen/ATen.h>

#include <utility>

namespace rankscope {

bool Crossing::late(const at::Tensor& made) const { return late_ || !made.is_cpu(); }

void Crossing::add(const at::Tensor& numbers, Read read) {
  pending_.items.push_back({numbers, std::move(read)});
}

void Crossing::then(std::function<void()> call) {
  pending_.items.push_back({{}, [call = std::move(call)](const double*) { call(); }});
}

void Crossing::keep(std::shared_ptr<const void> owner) { pending_.owners.push_back(std::move(owner)); }

void Crossing::send() {
  std::vector<at::Tensor> flat;
  int64_t size = 0;
  for (Item& item : pending_.items) {
    if (!item.numbers.defined() || item.numbers.is_cpu()) continue;
    flat.push_back(item.numbers.to(at::kDouble).reshape(-1));
    item.place = size;
    size += flat.back().numel();
    item.numbers.reset();
  }
  if (!flat.empty()) {
    pending_.copy = at::empty({size}, at::TensorOptions().dtype(at::kDouble).pinned_memory(true));
    pending_.copy.copy_(at::cat(flat), /*non_blocking=*/true);
    pending_.arrived.record(flat.front());
  }
  sent_.push_back(std::exchange(pending_, {}));
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
  send();
  read(late_ || sent_.back().copy.defined() ? 1 : 0);
}

void Crossing::finish() {
  send();
  read(0);
}

}  // namespace rankscope
