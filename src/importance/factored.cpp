#include "importance/factored.h"

#include <algorithm>
#include <vector>

#include "importance/savings.h"

namespace rankscope {
namespace {

bool is_off(const AttentionSpec& a, int64_t head) {
  return std::find(a.heads_off.begin(), a.heads_off.end(), head) != a.heads_off.end();
}

// Query heads that read a KV head.
int64_t readers(const AttentionSpec& a, int64_t kv_head) {
  const int64_t group = a.heads / a.kv_heads;
  int64_t count = 0;
  for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) count += !is_off(a, h);
  return count;
}

int64_t rank_left(int64_t whole, int64_t rank) { return rank > 0 ? std::min(rank, whole) : whole; }

int64_t output_width(const AttentionSpec& a, int64_t width) {
  return a.output_width > 0 ? a.output_width : width;
}

// A matrix of that rank, whole or as two factors.
int64_t matrix(int64_t rows, int64_t columns, int64_t rank) {
  return std::min(rows * columns, std::min({rank, rows, columns}) * (rows + columns));
}

// One side of a KV head: the keys with their queries, or the values with their outputs.
struct Side {
  int64_t rows = 0, rank = 0;  // of the map that makes keys or values
  int64_t rest = 0;            // parameters of the other map, for all its readers, and of biases
};

class KvHead {
 public:
  KvHead(const AttentionSpec& a, int64_t kv_rank, int64_t width, int64_t readers)
      : a_(a), latent_(kv_rank), width_(width), readers_(readers), alone_(a.heads == a.kv_heads) {}

  FactoredSize smallest() const {
    FactoredSize best{-1, 0};
    for (const Side& keys : key_sides())
      for (const Side& values : value_sides())
        for (const FactoredSize& size : {separate(keys, values), through_latent(keys, values)})
          if (best.parameters < 0 || size.parameters < best.parameters) best = size;
    return best;
  }

 private:
  std::vector<Side> key_sides() const {
    const int64_t d = a_.d_qk, r = rank_left(d, a_.truncate_qk);
    const int64_t biases = a_.bias ? readers_ * d + (a_.key_bias ? d : 0) : 0;
    // Cut as a product, keys have one more dimension for what the queries' biases add.
    const int64_t keys = r < d && !is_turned(a_) ? r + 1 : r;
    std::vector<Side> sides{{d, keys, readers_ * matrix(d, width_, r) + biases}};
    const int64_t inner = rank_left(r, latent_);  // keys of fewer dimensions make QK maps of no more
    if (alone_ && inner < d && !is_turned(a_) && a_.variant == "softmax")
      sides.push_back({inner + 1, inner + 1, inner * width_ + inner});
    return sides;
  }

  std::vector<Side> value_sides() const {
    const int64_t d = a_.d_v, r = rank_left(d, a_.truncate_ov), out = output_width(a_, width_);
    std::vector<Side> sides{{d, r, readers_ * matrix(out, d, r) + (a_.bias ? d : 0)}};
    const int64_t inner = rank_left(r, latent_);
    // The biases of the values move into that of the output; learned sinks keep them a dimension.
    if (alone_ && inner < d && (r < d || (a_.output_bias && a_.variant == "softmax")))
      sides.push_back({inner, inner, out * (inner + (a_.sinks ? 1 : 0))});
    return sides;
  }

  FactoredSize separate(const Side& keys, const Side& values) const {
    return {matrix(keys.rows, width_, rank_left(keys.rank, latent_)) +
                matrix(values.rows, width_, rank_left(values.rank, latent_)) + keys.rest + values.rest,
            keys.rows + values.rows};
  }

  FactoredSize through_latent(const Side& keys, const Side& values) const {
    if (latent_ == 0) return separate(keys, values);
    const int64_t latent = std::min(latent_, keys.rank + values.rank);
    return {latent * width_ + matrix(keys.rows, latent, keys.rank) +
                matrix(values.rows, latent, values.rank) + keys.rest + values.rest,
            latent};
  }

  const AttentionSpec& a_;
  int64_t latent_, width_, readers_;
  bool alone_;  // one query head a KV head: products can be kept as factors
};

}  // namespace

bool is_turned(const AttentionSpec& a) {
  return (!a.rotary_frequencies.empty() && a.positions) || a.qk_norm.acts();
}

int64_t heads_kept(const AttentionSpec& a) {
  int64_t count = 0;
  for (int64_t h = 0; h < a.heads; ++h) count += !is_off(a, h);
  return count;
}

int64_t kv_heads_read(const AttentionSpec& a) {
  int64_t count = 0;
  for (int64_t g = 0; g < a.kv_heads; ++g) count += readers(a, g) > 0;
  return count;
}

FactoredSize factored_size(const AttentionSpec& a, int64_t kv_rank, int64_t width) {
  FactoredSize total;
  for (int64_t g = 0; g < a.kv_heads; ++g) {
    const int64_t count = readers(a, g);
    if (count == 0) continue;
    const FactoredSize one = KvHead(a, kv_rank, width, count).smallest();
    total.parameters += one.parameters;
    total.cache += one.cache;
  }
  return total;
}

FactoredSize factored_size(const BranchSpec& branch, int64_t kv_rank, int64_t width) {
  const AttentionSpec& a = *branch.attention();
  FactoredSize size{needed_by_heads(branch, width), cached_of_a_token(branch, width)};
  if (kv_rank == 0 && a.truncate_qk == 0 && a.truncate_ov == 0) return size;
  AttentionSpec whole = a;
  whole.truncate_qk = whole.truncate_ov = 0;
  const FactoredSize before = factored_size(whole, 0, width), after = factored_size(a, kv_rank, width);
  size.parameters -= before.parameters - after.parameters;
  size.cache -= before.cache - after.cache;
  return size;
}

StoredRanks stored_ranks(const AttentionSpec& a, int64_t kv_rank, int64_t width) {
  const bool product = a.truncate_qk > 0 && !is_turned(a);
  const int64_t qk = rank_left(a.d_qk, a.truncate_qk), ov = rank_left(a.d_v, a.truncate_ov);
  const int64_t kept = heads_kept(a), read = kv_heads_read(a);
  const int64_t k = rank_left(product ? std::min(qk + 1, a.d_qk) : qk, kv_rank), v = rank_left(ov, kv_rank);
  const auto most = [](int64_t rank, int64_t side) { return std::min(rank, side); };
  return {.q = most(kept * (product ? rank_left(qk, kv_rank) : qk), width),
          .k = most(read * k, width),
          .v = most(read * v, width),
          .o = most(kept * (a.truncate_ov > 0 ? rank_left(ov, kv_rank) + (a.sinks ? 1 : 0) : ov),
                    output_width(a, width)),
          .kv = most(read * rank_left(k + v, kv_rank), width)};
}

}  // namespace rankscope
