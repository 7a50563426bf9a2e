#include "attention/support/scores.h"

#include <ATen/ATen.h>

#include <cmath>
#include <map>

namespace rankscope {
namespace {

// Kept, so that no step uploads them again.
at::Tensor frequencies_on(const at::Device& device, const std::vector<double>& values) {
  thread_local std::map<std::pair<std::string, std::vector<double>>, at::Tensor> known;
  at::Tensor& there = known[{device.str(), values}];
  if (!there.defined()) there = at::tensor(values, at::kDouble).to(device);
  return there;
}

// Rotates pairs of the first n channels by position times frequency: (x_i, x_{i + n/2}), the layout of
// Llama's checkpoints, or (x_2i, x_{2i + 1}). The angles are computed in double: position 8,000 times 1 is
// not exact enough in float.
at::Tensor rotate(const at::Tensor& x, const AttentionSpec& spec, const std::vector<double>& by,
                  const at::Tensor& positions) {
  const auto pairs = static_cast<int64_t>(by.size());
  const at::Tensor frequencies = frequencies_on(x.device(), by);
  const at::Tensor angles = positions.to(at::kDouble).unsqueeze(-1) * frequencies;  // [S, T, pairs]
  const at::Tensor cos = (angles.cos() * spec.rotary_scale).to(x.scalar_type()).unsqueeze(2);
  const at::Tensor sin = (angles.sin() * spec.rotary_scale).to(x.scalar_type()).unsqueeze(2);
  const at::Tensor turned = x.narrow(-1, 0, 2 * pairs);
  const at::Tensor two = spec.rotary_adjacent ? turned.unflatten(-1, {pairs, 2}).transpose(-1, -2)
                                              : turned.unflatten(-1, {2, pairs});  // [.., 2, pairs]
  const at::Tensor a = two.select(-2, 0), b = two.select(-2, 1);
  std::vector<at::Tensor> parts{(a * cos).sub_(b * sin)};
  parts.push_back((b * cos).add_(a * sin));
  if (spec.rotary_adjacent) parts = {at::stack(parts, -1).flatten(-2)};
  const int64_t rest = x.size(-1) - 2 * pairs;
  if (rest > 0) parts.push_back(x.narrow(-1, 2 * pairs, rest));
  return at::cat(parts, -1);
}

// The frequencies that a text of `tokens` turns by.
std::vector<double> frequencies_for(int64_t tokens, const AttentionSpec& spec) {
  if (spec.rotary_context == 0 || tokens <= spec.rotary_context) return spec.rotary_frequencies;
  if (!spec.rotary_long.empty()) return spec.rotary_long;
  // A base that grows as the text does, so that the slowest frequency, the last, is stretched by all of it
  // and the first not at all.
  std::vector<double> out = spec.rotary_frequencies;
  const double longer = static_cast<double>(tokens) / static_cast<double>(spec.rotary_context);
  const double grown = spec.rotary_growth * longer - (spec.rotary_growth - 1);
  const auto slowest = static_cast<double>(out.size() - 1);
  for (size_t i = 1; i < out.size(); ++i) out[i] *= std::pow(grown, -static_cast<double>(i) / slowest);
  return out;
}

// What the places of queries and keys add to the scores: per head, a slope times how near the key is.
at::Tensor nearness(const AttentionInput& in) {
  const auto options = in.q.options().dtype(at::kDouble);
  const at::Tensor slopes = at::tensor(in.spec.alibi, at::kDouble).to(options).view({1, -1, 1, 1});
  const at::Tensor keys = in.key_positions.to(at::kDouble).unsqueeze(1).unsqueeze(1);  // [S, 1, 1, T']
  if (in.spec.alibi_rounded)
    return (slopes.to(at::kBFloat16) * keys.to(at::kBFloat16)).to(in.q.options()) * in.spec.scale;
  return (slopes * (keys - in.positions.to(at::kDouble).unsqueeze(1).unsqueeze(3))).to(in.q.options());
}

// T5's ranges of distance: one for every small distance, wider and wider ones behind those; keys ahead have a
// half of their own where there are any. Counted in the arithmetic of the pass, as the original does.
at::Tensor bucket_of(const at::Tensor& ahead, const AttentionSpec& spec, at::ScalarType type) {
  const int64_t half = spec.causal ? spec.buckets : spec.buckets / 2, exact = half / 2;
  const at::Tensor distance = spec.causal ? ahead.neg().clamp_min(0) : ahead.abs();
  const double reach = std::log(static_cast<double>(spec.bucket_distance) / static_cast<double>(exact));
  const at::Tensor far = (at::log(distance.to(type) / exact) / reach * (half - exact))
                             .to(at::kLong)
                             .add_(exact)
                             .clamp_max_(half - 1);
  const at::Tensor bucket = at::where(distance < exact, distance, far);
  return spec.causal ? bucket : bucket + (ahead > 0).to(at::kLong) * half;
}

// The learned bias of every pair's range, [S, H, T, T'].
at::Tensor bucket_bias(const AttentionInput& in) {
  const at::Tensor ahead = in.key_positions.unsqueeze(1) - in.positions.unsqueeze(2);  // [S, T, T']
  const at::Tensor& table = in.weights.get(in.name + ".bucket_bias");                  // [buckets, H]
  const at::Tensor bucket = bucket_of(ahead, in.spec, in.q.scalar_type());
  return at::embedding(table, bucket).permute({0, 3, 1, 2});
}

}  // namespace

TurnedHeads turned_heads(const AttentionInput& in) {
  if (!in.spec.positions || in.spec.rotary_frequencies.empty()) return {in.q, in.k};
  const std::vector<double> by = frequencies_for(in.k.size(1), in.spec);
  return {rotate(in.q, in.spec, by, in.positions), rotate(in.k, in.spec, by, in.key_positions)};
}

Scores::Scores(const AttentionInput& in) : spec_(in.spec), queries_(in.q.size(1)), keys_(in.k.size(1)) {
  const TurnedHeads turned = turned_heads(in);
  q_ = heads_first(turned.q, spec_.heads);
  k_ = heads_first(turned.k, spec_.heads);
  if (spec_.positions && !spec_.alibi.empty()) near_ = nearness(in);
  if (spec_.positions && spec_.buckets > 0) near_ = bucket_bias(in);
}

at::Tensor Scores::products(int64_t first, int64_t count, int64_t first_row, int64_t rows) const {
  const int64_t H = spec_.heads;
  const at::Tensor q = q_.narrow(0, first * H, count * H).narrow(1, first_row, rows) * spec_.scale;
  const at::Tensor k = k_.narrow(0, first * H, count * H);
  return at::bmm(q, k.transpose(1, 2)).view({count, H, rows, keys_});
}

at::Tensor Scores::tile(int64_t first, int64_t count, int64_t first_row, int64_t rows) const {
  at::Tensor scores = products(first, count, first_row, rows);
  if (spec_.softcap > 0) scores = at::tanh(scores / spec_.softcap) * spec_.softcap;
  if (near_.defined()) {
    const at::Tensor near = near_.narrow(0, first, count);
    scores = scores + (near.size(2) == 1 ? near : near.narrow(2, first_row, rows));
  }
  return scores;
}

}  // namespace rankscope
