#include "pass/fitting.h"

#include <fmt/format.h>

#include <algorithm>

#include "parts/parameters.h"
#include "tensors/device.h"

namespace rankscope {
namespace {

constexpr int64_t kNumber = 4;  // bytes, of float32

int64_t largest_block(const ModelSpec& spec) {
  int64_t most = 0;
  for (const BlockSpec& block : spec.blocks) {
    int64_t numbers = 0;
    for (const Parameter& p : parameters_of(spec, fmt::format("blocks.{}", block.weights)))
      numbers += element_count(p);
    most = std::max(most, numbers);
  }
  return most;
}

// What attention and MLP hold of one token at once.
int64_t widest_token(const ModelSpec& spec) {
  int64_t most = 0;
  for (const BlockSpec& block : spec.blocks) {
    if (block.attention_branch() == nullptr) continue;
    const AttentionSpec& a = block.attention();
    most = std::max(most, a.heads * (a.d_qk + a.d_v) + a.kv_heads * (a.d_qk + a.d_v));
  }
  return most + 3 * spec.width;
}

std::string gib(int64_t bytes) { return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30)); }

}  // namespace

int64_t least_bytes(const PassPlan& plan, int64_t tokens) {
  const ModelSpec& spec = plan.variants.front().spec;
  const auto states = static_cast<int64_t>(plan.variants.size()) + 1;
  return kNumber * (2 * largest_block(spec) + tokens * (states * spec.width + widest_token(spec)));
}

int64_t length_that_fits(const PassPlan& plan, int64_t tokens, int64_t bytes) {
  for (tokens /= 2; tokens >= 2; tokens /= 2)
    if (least_bytes(plan, tokens) <= bytes) return tokens;
  return 0;
}

void halve_batches(PassPlan& plan, std::vector<std::string>& notes) {
  int64_t most = 0, longest = 0;
  for (const std::vector<Batch>& input : plan.inputs)
    for (const Batch& b : input) {
      most = std::max(most, b.count());
      for (int64_t s = 0; s < b.count(); ++s) longest = std::max(longest, b.length(s));
    }
  if (most > 1) {
    for (std::vector<Batch>& input : plan.inputs) input = halved(input);
    for (StreamPlan& stream : plan.streams) {
      for (std::vector<Batch>& input : stream.inputs) input = halved(input);
      for (FinalState& state : *stream.states)
        state.cut_into(stream.inputs[plan.variants[state.variants.front()].input]);
    }
    notes.push_back(
        fmt::format("{} samples at once are more than the memory of {} holds: {} are computed at once", most,
                    plan.device, (most + 1) / 2));
    return;
  }
  const DeviceMemory memory = device_memory(plan.device);
  const int64_t fits = length_that_fits(plan, longest, memory.free);
  Error error(
      fmt::format("one sample of {} tokens is more than the memory of {} holds", longest, plan.device));
  throw std::move(error)
      .in(fmt::format("--device {}, {} free of {}", plan.device, gib(memory.free), gib(memory.total)))
      .hint(
          fits > 0
              ? fmt::format("--max-length {} fits by count (at least {}), a larger --device-memory, or "
                            "--device cpu",
                            fits, gib(least_bytes(plan, fits)))
              : fmt::format("--device cpu: two blocks of weights alone take {}", gib(least_bytes(plan, 0))));
}

}  // namespace rankscope
