// Latent attention (DeepSeek-V2, V3): keys and values come from one narrow latent of the token, which is all
// that a cache has to keep, and queries from another. Positions turn a few channels of their own, whose keys
// all heads share and which come first in every head.
#include <cmath>

#include "base/error.h"
#include "parts/support/attention.h"

namespace rankscope {
namespace {

void build_latent_attention(PartBuilder& b) {
  const AttentionSpec& a = b.attention();
  const auto whole = [&](const char* name) { return static_cast<int64_t>(b.option(name)); };
  const int64_t q_rank = whole("q_rank"), kv_rank = whole("kv_rank"), rotated = whole("rotated");
  if (rotated >= a.d_qk || a.kv_heads != a.heads || a.qk_norm.there() || !a.value_map)
    throw usage_error(
        "latent attention has a key per head, wider than what positions turn, and no other norms");
  const NormSpec norm{NormKind::rms, 1e-6};  // the original's own, whatever the other norms have
  const auto map = [&](const char* letter, Value from, int64_t out, bool heads, const char* site, bool bias,
                       bool values = false) {
    const double spread = std::sqrt(6.0 / static_cast<double>(b.width_of(from) + out));
    return b.linear(letter, from, out,
                    {.bias = bias,
                     .spread = spread,
                     .carries_values = values,
                     .head_axis = heads ? 0 : -1,
                     .site = site});
  };
  Value from = kInput;
  if (q_rank > 0) from = b.norm("q_latent_norm", map("Q_latent", kInput, q_rank, false, "", a.bias), norm);
  const Value q = map("Q", from, a.heads * a.d_qk, true, "hook_q", false);
  const Value latent =
      b.norm("kv_latent_norm", map("KV_latent", kOther, kv_rank, false, "hook_kv_latent", a.bias), norm);
  const Value shared = map("K_rotated", kOther, rotated, false, "", a.bias);
  const Value k = b.beside(shared, map("K", latent, a.heads * (a.d_qk - rotated), true, "", false), a.heads);
  b.show(k, "hook_k", a.heads);
  const Value v = map("V", latent, a.heads * a.d_v, true, "hook_v", false, true);
  output_map(b, b.attend(q, k, v));
}

}  // namespace

extern const Part part_latent_attention{
    .name = "latent_attention",
    .summary = "DeepSeek: attention whose keys and values are maps of one narrow latent",
    .kind = Part::Kind::attention,
    .options = {{"q_rank", 0, 0, 1 << 20, "width of the latent of queries; 0: they come from the token"},
                {"kv_rank", 4, 1, 1 << 20, "width of the latent of keys and values"},
                {"rotated", 2, 2, 1 << 14, "channels that positions turn, whose keys all heads share"}},
    .sites = {{"attn.hook_kv_latent", "the latent of keys and values, before its norm"}},
    .build = build_latent_attention};

}  // namespace rankscope
