#include "train/constructions.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "train/layout.h"

namespace rankscope {
namespace {

class Writer {
 public:
  Writer(const ModelSpec& network, std::vector<float>& values) : layout_(network), values_(values) {}

  void fill(const std::string& name, float value) {
    for (const Slot& slot : layout_.slots())
      if (slot.parameter.name == name)
        std::fill_n(values_.begin() + slot.offset, element_count(slot.parameter), value);
  }
  void set(const std::string& name, int64_t row, int64_t column, double value) {
    for (const Slot& slot : layout_.slots())
      if (slot.parameter.name == name)
        values_[static_cast<size_t>(slot.offset + row * slot.parameter.shape[1] + column)] =
            static_cast<float>(value);
  }
  const Layout& layout() const { return layout_; }

 private:
  Layout layout_;
  std::vector<float>& values_;
};

// Heads hold blocks of coordinates: head h of a module reads coordinates [h * rank, (h + 1) * rank).
std::vector<float> identity(const TrialSpec& t) {
  const ModelSpec& n = t.network;
  const AttentionSpec& a = n.blocks.front().attention();
  std::vector<float> values(static_cast<size_t>(Layout(n).size()), 0.0f);
  Writer write(n, values);
  for (const Slot& slot : write.layout().slots())
    if (slot.parameter.role == Parameter::Role::gain) write.fill(slot.parameter.name, 1.0f);
  const double sign = t.task.name == "farthest" ? -1.0 : 1.0;
  const double score = sign * t.start_beta / a.scale;
  const std::string b = "blocks.0.attn.";
  const int64_t d = n.embedding.points;  // positions, where there are any, do not take part
  const int64_t heads = a.heads / a.modules;
  for (int64_t h = 0; h < a.heads; ++h) {
    for (int64_t i = 0; i < a.d_qk; ++i) {
      const int64_t coordinate = (h % heads * a.d_qk + i) % d;
      write.set(b + "W_Q", h * a.d_qk + i, coordinate, score);
      write.set(b + "W_K", h * a.d_qk + i, coordinate, 1.0);
    }
    if (!a.value_map) {
      for (int64_t i = 0; i < n.output.channels; ++i)
        write.set(b + "W_O", i, h * n.width + i, 1.0 / static_cast<double>(heads));
      continue;
    }
    // The output must drown the skip connection, as the norm keeps the direction only.
    const double share = static_cast<double>(d) / static_cast<double>(heads * a.d_v);
    for (int64_t i = 0; i < a.d_v; ++i) {
      const int64_t coordinate = (h % heads * a.d_v + i) % d;
      write.set(b + "W_V", h * a.d_v + i, coordinate, 1.0);
      write.set(b + "W_O", coordinate, h * a.d_v + i, t.start_beta * share);
    }
  }
  return values;
}

std::vector<float> random_start(const TrialSpec& t) {
  std::vector<float> values = initial_parameters(t.network, t.init_seed);
  if (t.start_scale == 1) return values;
  const Layout layout(t.network);
  for (const Slot& slot : layout.slots())
    if (slot.parameter.carries_values)
      for (int64_t i = 0; i < element_count(slot.parameter); ++i)
        values[static_cast<size_t>(slot.offset + i)] *= static_cast<float>(t.start_scale);
  return values;
}

}  // namespace

std::vector<float> starting_parameters(const TrialSpec& t) {
  if (t.start == "random") return random_start(t);
  if (t.start != "identity") throw unknown_name("start", t.start, {"random", "identity"});
  if (t.network.embedding.points == 0 || t.network.embedding.point_map ||
      (t.task.name != "farthest" && t.task.name != "nearest"))
    throw usage_error("start=identity is known for tasks nearest and farthest, without an embedding");
  return identity(t);
}

TrainState starting_state(const TrialSpec& trial) {
  TrainState s;
  s.parameters = starting_parameters(trial);
  s.m.assign(s.parameters.size(), 0.0f);
  s.v = s.m;
  return s;
}

}  // namespace rankscope
