// A block of queries at a time. Scores are held transposed, [keys, queries of the block], in units of ln 2:
// then a softmax runs down the keys with a query in each lane, and both products read their operands where
// they lie.
#include "kernels/long_attention.h"

#include "kernels/cpu/simd/gemm.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/scratch.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

constexpr int W = lanes<float>;
using V = Vec<float>;

constexpr int64_t kBlock = 32;                      // queries: whole vectors of every set
constexpr int kTall = vector_bytes == 64 ? 12 : 6;  // keys by two vectors of queries, in registers
constexpr int kWide = vector_bytes == 64 ? 8 : 4;   // queries by two vectors of values
constexpr int64_t kChunk = 256;                     // keys whose values stay in the first-level cache
constexpr int64_t kFloatSum = 64;                   // terms that are added before they are widened
constexpr float kNothing = -100;                    // 2^-100 beside 1 is nothing
constexpr double kLog2E = 1.44269504088896340736, kLn2 = 0.693147180559945309417;
constexpr double kInfinity = __builtin_inf();

struct Seen {  // keys [first, end) of a query
  int64_t first, end;
};

Seen seen(const LongAttention& a, int64_t query) {
  Seen s{0, a.keys};
  if (a.window > 0) {
    if (query - a.window + 1 > 0) s.first = query - a.window + 1;
    if (query + a.window < a.keys) s.end = query + a.window;
  }
  if (a.causal && query + 1 < s.end) s.end = query + 1;
  return s;
}

/// Block of queries [first, first + count), and its part of the matrix: keys [seen.first, seen.end).
struct Block {
  int64_t first, count;
  Seen seen;
  float* scores;  // [keys seen, kBlock]
  int64_t keys() const { return seen.end - seen.first; }
};

/// Queries of the block as columns, in the scores' unit; columns behind the last query are zero.
void turn(const LongAttention& a, const float* q, int64_t count, float* turned) {
  const int64_t row = a.heads * a.width_qk;
  const auto factor = static_cast<float>(static_cast<double>(a.scale) * kLog2E);
  for (int64_t c = 0; c < a.width_qk; ++c)
    for (int64_t i = 0; i < kBlock; ++i) turned[c * kBlock + i] = i < count ? factor * q[i * row + c] : 0.0f;
}

/// -inf where a query does not see a key; a column without a query is zero, whatever the keys are.
void hide(const LongAttention& a, const Block& b) {
  const Seen early = seen(a, b.first), late = seen(a, b.first + b.count - 1);
  for (int64_t j = b.seen.first; j < b.seen.end; ++j) {
    float* row = b.scores + (j - b.seen.first) * kBlock;
    if (j < late.first || j >= early.end)
      for (int64_t i = 0; i < b.count; ++i) {
        const Seen s = seen(a, b.first + i);
        if (j < s.first || j >= s.end) row[i] = static_cast<float>(-kInfinity);
      }
    for (int64_t i = b.count; i < kBlock; ++i) row[i] = 0;
  }
}

/// Of every query: its largest score, the sum of 2^(score - largest), and the sum of that times its exponent.
struct Softmax {
  float top[kBlock];
  double sum[kBlock], weighted[kBlock];
};

/// Scores become 2^(score - largest).
void exponentials(const Block& b, Softmax& of) {
  for (int64_t c = 0; c < kBlock; c += W) {
    float* column = b.scores + c;
    V top = splat<float>(static_cast<float>(-kInfinity));
    for (int64_t j = 0; j < b.keys(); ++j) top = larger<float>(load(column + j * kBlock), top);
    store(of.top + c, top);
    for (int w = 0; w < W; ++w) of.sum[c + w] = of.weighted[c + w] = 0;
    for (int64_t from = 0; from < b.keys(); from += kFloatSum) {
      const int64_t end = from + kFloatSum < b.keys() ? from + kFloatSum : b.keys();
      V sum = {}, weighted = {};
      for (int64_t j = from; j < end; ++j) {
        const V t = load(column + j * kBlock) - top;
        const V e = t < kNothing ? V{} : exp2_nonpositive(t);
        store(column + j * kBlock, e);
        sum += e;
        weighted += e * larger<float>(splat<float>(kNothing), t);
      }
      for (int w = 0; w < W; ++w) {
        of.sum[c + w] += static_cast<double>(sum[w]);
        of.weighted[c + w] += static_cast<double>(weighted[w]);
      }
    }
  }
}

/// What multiplies a query's exponentials to make them attention, [kBlock]; 0 where there is no query.
void normalise(const LongAttention& a, const LongOperands& in, const LongResults& out, const Block& b,
               const Softmax& of, int64_t sample, int64_t head, float* factor) {
  const int64_t place = (sample * a.heads + head) * a.queries + b.first;
  for (int64_t i = 0; i < kBlock; ++i) factor[i] = 0;
  for (int64_t i = 0; i < b.count; ++i) {
    const double sum = of.sum[i], top = static_cast<double>(of.top[i]);
    double share = 1, rest = 0;  // of the keys and of the sink, over the larger of both largest scores
    if (in.sinks != nullptr) {
      const double sink = static_cast<double>(in.sinks[head]) * kLog2E;
      share = sink > top ? __builtin_exp2(top - sink) : 1.0;
      rest = sink > top ? 1.0 : __builtin_exp2(sink - top);
    }
    const double total = sum * share + rest;
    factor[i] = static_cast<float>(share / total);
    out.mass[place + i] = sum * share / total;
    if (out.entropy == nullptr) continue;
    const double h = kLn2 * (__builtin_log2(sum) - of.weighted[i] / sum);
    out.entropy[place + i] = h < 0 ? 0 : h;  // a NaN stays one
  }
}

/// received [keys] += what each key gets from the queries of the block.
void receive(const Block& b, const float* factor, double* received) {
  for (int64_t j = 0; j < b.keys(); j += W) {
    const int64_t count = b.keys() - j < W ? b.keys() - j : W;
    V rows[W] = {};
    for (int64_t r = 0; r < count; ++r)
      for (int64_t c = 0; c < kBlock; c += W)
        rows[r] += load(b.scores + (j + r) * kBlock + c) * load(factor + c);
    transpose<W>(rows);
    for (int w = 1; w < W; ++w) rows[0] += rows[w];
    for (int64_t r = 0; r < count; ++r) received[j + r] += static_cast<double>(rows[0][r]);
  }
}

/// mixed [kBlock, width] = exponentials^T values [keys, width].
void mix(const Block& b, const float* values, int64_t width, float* mixed) {
  for (int64_t from = 0; from < b.keys(); from += kChunk) {
    const int64_t keys = b.keys() - from < kChunk ? b.keys() - from : kChunk;
    const Factor<float> weights{b.scores + from * kBlock, 1, kBlock};
    const float* v = values + from * width;
    int64_t c = 0;
    for (; c + 2 * W <= width; c += 2 * W)
      strip<kWide, 2, W>(kBlock, weights, v + c, width, keys, mixed + c, width, from > 0);
    if (c < width) gemm_by<W>(kBlock, width - c, keys, weights, v + c, width, mixed + c, width, from > 0);
  }
}

}  // namespace

void long_attention(const LongAttention& a, const LongOperands& in, const LongResults& out, int64_t sample,
                    int64_t head, int64_t segment) {
  const int64_t rows = long_segment_rows(a), begin = segment * rows,
                end = begin + rows < a.queries ? begin + rows : a.queries;
  const int64_t key_head = sample * a.key_heads + head / (a.heads / a.key_heads),
                value_head = sample * a.value_heads + head / (a.heads / a.value_heads);
  const float *k = in.k + key_head * a.keys * a.width_qk, *v = in.v + value_head * a.keys * a.width_v;
  double* received = out.received == nullptr
                         ? nullptr
                         : out.received + ((sample * a.heads + head) * long_segments(a) + segment) * a.keys;
  for (int64_t j = 0; received != nullptr && j < a.keys; ++j) received[j] = 0;

  auto* turned = static_cast<float*>(
      scratch(sizeof(float) * static_cast<size_t>((a.width_qk + a.width_v + a.keys) * kBlock)));
  float *mixed = turned + a.width_qk * kBlock, *scores = mixed + a.width_v * kBlock;
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t count = end - i < kBlock ? end - i : kBlock;
    const Block b{i, count, {seen(a, i).first, seen(a, i + count - 1).end}, scores};
    turn(a, in.q + ((sample * a.queries + i) * a.heads + head) * a.width_qk, count, turned);
    for (int64_t c = 0; c < kBlock; c += 2 * W)
      strip<kTall, 2, W>(b.keys(), {k + b.seen.first * a.width_qk, a.width_qk, 1}, turned + c, kBlock,
                         a.width_qk, scores + c, kBlock, false);
    if (a.causal || a.window > 0 || count < kBlock) hide(a, b);
    Softmax of;
    exponentials(b, of);
    float factor[kBlock];
    normalise(a, in, out, b, of, sample, head, factor);
    if (received != nullptr) receive(b, factor, received + b.seen.first);
    mix(b, v + b.seen.first * a.width_v, a.width_v, mixed);
    for (int64_t r = 0; r < count; ++r) {
      float* to = out.out + ((sample * a.queries + i + r) * a.heads + head) * a.width_v;
      for (int64_t c = 0; c < a.width_v; ++c) to[c] = mixed[r * a.width_v + c] * factor[r];
    }
  }
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
