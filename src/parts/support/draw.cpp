#include <cmath>
#include <map>
#include <string_view>

#include "base/philox.h"
#include "base/stream_name.h"
#include "parts/parameters.h"

namespace rankscope {
namespace {

// Tied vocabularies share their numbers, and so do blocks that start alike: both are drawn under one name. An
// encoder and its decoder have one vocabulary, and the blocks of a stream one bias by distance.
std::string drawn_as(const std::string& name, const ModelSpec& spec) {
  if (name.ends_with(".bucket_bias")) return name.substr(0, name.find("blocks.")) + "bucket_bias";
  if (name == "unembed.W_U" && spec.output.tied) return "embed.W_E";
  if (name.ends_with(".embed.W_E")) return "embed.W_E";
  if (spec.init.same_blocks && name.rfind("blocks.", 0) == 0)
    return "blocks.0" + name.substr(name.find('.', 7));
  return name;
}

// What the longest ending of the name among these says; nullptr where none is one.
const double* by_ending(const std::map<std::string, double>& endings, std::string_view name) {
  const double* found = nullptr;
  size_t longest = 0;
  for (const auto& [ending, value] : endings) {
    if (!name.ends_with(ending) || ending.size() <= longest) continue;
    if (name.size() == ending.size() || name[name.size() - 1 - ending.size()] == '.')
      found = &value, longest = ending.size();
  }
  return found;
}

// A normal number within `cut` deviations: one that is not is drawn again.
double normal_within(uint64_t seed, uint32_t stream, uint64_t i, double cut) {
  for (uint32_t again = 0;; ++again)
    if (const double x = Philox{seed, stream, again}.normal(i); cut <= 0 || std::fabs(x) <= cut) return x;
}

// Whether the parameter holds the positions of a stream that hears: sinusoids, which nobody learns.
bool is_sinusoids(const std::string& name, const ModelSpec& spec) {
  if (name == "embed.W_pos") return spec.embedding.sounds > 0;
  for (const StreamSpec& s : spec.sources)
    if (name == s.name + ".embed.W_pos") return s.embedding.sounds > 0;
  return false;
}

// Sines of the time in the first half of the channels, cosines in the second, slower from channel to channel.
double sinusoid(uint64_t index, int64_t width) {
  const auto channels = static_cast<uint64_t>(width);
  const uint64_t half = channels / 2, channel = index % channels, time = index / channels;
  const double slower = half > 1 ? std::log(10000.0) / static_cast<double>(half - 1) : 0.0;
  const double angle = static_cast<double>(time) * std::exp(-slower * static_cast<double>(channel % half));
  return channel < half ? std::sin(angle) : std::cos(angle);
}

}  // namespace

void draw(const Parameter& p, const ModelSpec& spec, uint64_t seed, int64_t first, int64_t count,
          float* out) {
  const std::string name = drawn_as(p.name, spec);
  const uint32_t stream = stream_of(name);
  const Philox random{seed, stream, 0};
  const auto each = [&](auto value) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(value(static_cast<uint64_t>(first + i)));
  };
  const auto constant = [&](double value) { each([=](uint64_t) { return value; }); };
  const auto uniform = [&](double spread) {
    each([&](uint64_t i) { return spread * (2.0 * random.uniform(i) - 1.0); });
  };
  if (is_sinusoids(p.name, spec) && p.shape.back() % 2 == 0)
    return each([&](uint64_t i) { return sinusoid(i, p.shape.back()); });
  if (const double* value = by_ending(spec.init.constants, name)) return constant(*value);
  const double* own = by_ending(spec.init.stds, name);
  if (p.role == Parameter::Role::gain) return constant(1.0);
  if (spec.init.kind == InitKind::torch) return p.spread > 0 ? uniform(p.spread) : constant(0.0);
  if (p.role == Parameter::Role::bias && own == nullptr) return constant(0.0);
  if (spec.init.kind == InitKind::mixed && p.carries_values)
    return uniform(1 / std::sqrt(static_cast<double>(spec.width)));
  const double std = own != nullptr ? *own : spec.init.std;
  each([&](uint64_t i) { return std * normal_within(seed, stream, i, spec.init.cut); });
}

}  // namespace rankscope
