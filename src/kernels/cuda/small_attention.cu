// Which attention kernel takes which trials: one launch for each number of heads in the stack.
#include <bit>
#include <span>

#include "kernels/cuda/attention_groups.cuh"
#include "kernels/cuda/launch.cuh"

namespace rankscope::cuda {
namespace {

constexpr int64_t kMaxTokens = 256, kFastKeys = 16;

void check_shape(const SmallAttention& a) {
  const auto refuse = [](const char* what) { throw Error(what).in("small_attention on CUDA"); };
  if (a.trials > kMaxTrials) refuse("more trials than one call takes");
  if (a.queries > kMaxTokens || a.keys > kMaxTokens || a.keys < 1)
    refuse("between 1 and 256 keys and queries, please");
  for (int64_t t = 0; t < a.trials; ++t) {
    if (a.heads[t] < 1 || a.width_qk % a.heads[t] != 0)
      refuse("the heads do not divide the width of q and k");
    if (!a.shared_values && a.width_v % a.heads[t] != 0) refuse("the heads do not divide the width of v");
  }
}

bool nothing_to_do(const SmallAttention& a) {
  return a.trials == 0 || a.sequences == 0 || a.queries == 0 || a.width_qk == 0 || a.width_v == 0;
}

struct Pointer {
  const void* data;
  Rows rows;
};

// Rows that may be read `floats` at a time.
bool aligned(std::span<const Pointer> operands, int floats) {
  for (const Pointer& p : operands)
    if (std::bit_cast<uintptr_t>(p.data) % (sizeof(float) * floats) != 0 || p.rows.trial % floats != 0 ||
        p.rows.row % floats != 0)
      return false;
  return true;
}

// The width of the fast kernel that takes this group, 0 if none does.
int fast_width(const SmallAttention& a, const Group& g, std::span<const Pointer> operands) {
  if (a.queries != kFastKeys || a.keys != kFastKeys || a.shared_values || g.width_qk != g.width_v) return 0;
  const int width = g.width_qk;
  if (!std::has_single_bit(static_cast<unsigned>(width)) || width > 128) return 0;
  return aligned(operands, width < 4 ? width : 4) ? width : 0;
}

}  // namespace

bool available() { return true; }

void small_attention_forward(const SmallAttention& a, const float* q, const float* k, const float* v,
                             float* out, void* stream) {
  check_shape(a);
  if (nothing_to_do(a)) return;
  const cudaStream_t s = as_stream(stream);
  const Pointer operands[] = {{q, a.q}, {k, a.k}, {v, a.v}, {out, a.out}};
  for_each_group(a, [&](const Group& g) {
    const Forward f{g, {q, a.q}, {k, a.k}, {v, a.v}, {out, a.out}};
    if (a.hard) return hard_forward(f, s);
    switch (fast_width(a, g, operands)) {
      case 1:
        return narrow_forward<1>(f, s);
      case 2:
        return narrow_forward<2>(f, s);
      case 4:
        return narrow_forward<4>(f, s);
      case 8:
        return narrow_forward<8>(f, s);
      case 16:
        return tile_forward<16>(f, s);
      case 32:
        return tile_forward<32>(f, s);
      case 64:
        return tile_forward<64>(f, s);
      case 128:
        return tile_forward<128>(f, s);
      default:
        return any_forward(f, aligned(operands, 4), s);
    }
  });
}

void small_attention_backward(const SmallAttention& a, const float* q, const float* k, const float* v,
                              const float* dout, Rows dout_rows, float* dq, Rows dq_rows, float* dk,
                              Rows dk_rows, float* dv, Rows dv_rows, void* stream) {
  check_shape(a);
  if (nothing_to_do(a)) return;
  const cudaStream_t s = as_stream(stream);
  const Pointer operands[] = {{q, a.q},      {k, a.k},      {v, a.v},     {dout, dout_rows},
                              {dq, dq_rows}, {dk, dk_rows}, {dv, dv_rows}};
  for_each_group(a, [&](const Group& g) {
    const Backward b{
        g, {q, a.q}, {k, a.k}, {v, a.v}, {dout, dout_rows}, {dq, dq_rows}, {dk, dk_rows}, {dv, dv_rows}};
    if (a.hard) return hard_backward(b, s);
    switch (fast_width(a, g, operands)) {
      case 1:
        return narrow_backward<1>(b, s);
      case 2:
        return narrow_backward<2>(b, s);
      case 4:
        return narrow_backward<4>(b, s);
      case 8:
        return narrow_backward<8>(b, s);
      case 16:
        return tile_backward<16>(b, s);
      case 32:
        return tile_backward<32>(b, s);
      case 64:
        return tile_backward<64>(b, s);
      case 128:
        return tile_backward<128>(b, s);
      default:
        return any_backward(b, aligned(operands, 4), s);
    }
  });
}

}  // namespace rankscope::cuda
