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

/// The last hidden state of every token, [N, d].
inline at::Tensor observed_pass(const Checkpoint& checkpoint, WeightSource& source, const at::Tensor& ids,
                                const std::vector<const Lens*>& chosen, const std::string& device,
                                int64_t batch_size) {
  PassPlan plan;
  plan.variants = {{"full", checkpoint.spec(), 0, 0}};
  plan.sources = {&source};
  plan.inputs.push_back(make_batches(samples_of(ids), checkpoint.spec(), batch_size));
  plan.lenses = chosen;
  plan.layers = parse_layers("", checkpoint.spec().depth());
  plan.device = device;
  ResultTable table;
  std::vector<std::string> notes;
  return at::cat(*run_pass(plan, table, notes, {}).front().x);
}

/// Says how far apart they are; false where that is more than two orders of float32 products give.
inline bool same_hidden_state(const at::Tensor& ours, const at::Tensor& plain) {
  const double error = ((ours - plain.flatten(0, 1)).abs().max() / plain.abs().max()).item<double>();
  fmt::print("largest difference of the last hidden state: {:.2g} of the largest value\n", error);
  if (error < 1e-4) return true;
  fmt::print("the two do not compute the same: no times\n");
  return false;
}

}  // namespace rankscope
