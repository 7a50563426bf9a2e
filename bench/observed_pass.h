// Our pass over given token ids, and the proof that it computes what the plain forward pass does.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "checkpoint/load.h"
#include "pass/pass.h"
#include "pass/variants.h"

namespace rankscope {

inline std::vector<Sample> samples_of(const at::Tensor& ids) {
  std::vector<Sample> out(static_cast<size_t>(ids.size(0)));
  for (size_t i = 0; i < out.size(); ++i) {
    const at::Tensor row = ids[static_cast<int64_t>(i)].contiguous();
    out[i].ids.assign(row.data_ptr<int64_t>(), row.data_ptr<int64_t>() + row.numel());
  }
  return out;
}

/// The last hidden state of every token, [N, d]; what the lenses found in `rows`.
inline at::Tensor observed_pass(const Checkpoint& checkpoint, WeightSource& source, const at::Tensor& ids,
                                const std::vector<const Lens*>& chosen, const std::string& device,
                                int64_t batch_size, ResultTable* rows = nullptr) {
  PassPlan plan;
  plan.variants = {{"full", checkpoint.spec(), 0, 0}};
  plan.sources = {&source};
  plan.inputs.push_back(make_batches(samples_of(ids), checkpoint.spec(), batch_size));
  plan.lenses = chosen;
  plan.layers = parse_layers("", checkpoint.spec().depth());
  plan.device = device;
  ResultTable table;
  std::vector<std::string> notes;
  const at::Tensor last = at::cat(*run_pass(plan, table, notes, {}).front().x);
  if (rows != nullptr) *rows = std::move(table);
  return last;
}

/// Holds both to our pass in float64, since two orders of float32 products drift apart without bound as a network
/// deepens: ours may err twice as much as the plain one, in the norm over all tokens. Says by how much they do.
inline bool same_hidden_state(const at::Tensor& ours, const at::Tensor& plain, const at::Tensor& exact) {
  const auto error = [&](const at::Tensor& x) {
    const at::Tensor off = x.reshape(exact.sizes()).to(at::kDouble) - exact;
    return (off.norm() / exact.norm()).item<double>();
  };
  const double our_error = error(ours), plain_error = error(plain);
  fmt::print("last hidden state against float64: ours is off by {:.2g}, the plain one by {:.2g}\n", our_error,
             plain_error);
  if (our_error <= 2 * plain_error) return true;
  fmt::print("the two do not compute the same: no times\n");
  return false;
}

}  // namespace rankscope
