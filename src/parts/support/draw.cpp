#include <cmath>

#include "base/philox.h"
#include "base/stream_name.h"
#include "parts/parameters.h"

namespace rankscope {
namespace {

// Tied vocabularies share their numbers, and so do blocks that start alike: both are drawn under one name.
std::string drawn_as(const std::string& name, const ModelSpec& spec) {
  if (name == "unembed.W_U" && spec.output.tied) return "embed.W_E";
  if (spec.init.same_blocks && name.rfind("blocks.", 0) == 0)
    return "blocks.0" + name.substr(name.find('.', 7));
  return name;
}

}  // namespace

void draw(const Parameter& p, const ModelSpec& spec, uint64_t seed, int64_t first, int64_t count,
          float* out) {
  const Philox random{seed, stream_of(drawn_as(p.name, spec)), 0};
  const auto each = [&](auto value) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(value(static_cast<uint64_t>(first + i)));
  };
  const auto uniform = [&](double spread) {
    each([&](uint64_t i) { return spread * (2.0 * random.uniform(i) - 1.0); });
  };
  if (p.role == Parameter::Role::gain) return each([](uint64_t) { return 1.0; });
  if (spec.init.kind == InitKind::torch)
    return p.spread > 0 ? uniform(p.spread) : each([](uint64_t) { return 0.0; });
  if (p.role == Parameter::Role::bias) return each([](uint64_t) { return 0.0; });
  if (spec.init.kind == InitKind::mixed && p.carries_values)
    return uniform(1 / std::sqrt(static_cast<double>(spec.width)));
  each([&](uint64_t i) { return spec.init.std * random.normal(i); });
}

}  // namespace rankscope
