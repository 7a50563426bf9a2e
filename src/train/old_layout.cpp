#include "train/old_layout.h"

#include <algorithm>

#include "train/networks.h"

namespace rankscope {
namespace {

// Where a parameter of an MLP stood among its own: each bias behind its matrix. Others keep their order.
int place_in_mlp(const std::string& name) {
  const std::string ends[] = {"mlp.W_in", "mlp.b_in", "mlp.W_out", "mlp.b_out"};
  for (int i = 0; i < 4; ++i)
    if (name.ends_with(ends[i])) return i;
  return -1;
}

}  // namespace

std::vector<Slot> old_order(const ModelSpec& spec, const Layout& layout) {
  std::vector<Slot> slots = layout.slots();
  // Networks that train on sets had the order of today; only those on points differ.
  if (spec.init.kind != InitKind::torch) return slots;
  for (size_t i = 0; i + 3 < slots.size(); ++i)
    if (place_in_mlp(slots[i].parameter.name) == 0)
      std::sort(slots.begin() + static_cast<std::ptrdiff_t>(i),
                slots.begin() + static_cast<std::ptrdiff_t>(i) +
                    (slots[i + 2].parameter.name.ends_with("mlp.b_in") ? 4 : 2),
                [](const Slot& a, const Slot& b) {
                  return place_in_mlp(a.parameter.name) < place_in_mlp(b.parameter.name);
                });
  if (asks_separately(spec))
    for (size_t i = 0; i + 1 < slots.size(); ++i)
      if (slots[i].parameter.name.ends_with("W_O") && slots[i + 1].parameter.name.ends_with("b_Q"))
        std::swap(slots[i], slots[i + 1]);
  return slots;
}

std::string old_name(const std::string& name, const ModelSpec& spec) {
  if (name == kPoints + ".embed.W_pos") return "embed.W_pos";
  if (spec.init.kind == InitKind::torch && name == "embed.W_in") return "embed.W_map";
  if (spec.init.kind == InitKind::torch && name == "embed.b_in") return "embed.b_map";
  return name;
}

}  // namespace rankscope
