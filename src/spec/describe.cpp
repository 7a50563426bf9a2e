#include "spec/model.h"

#include <fmt/format.h>

namespace rankscope {

namespace {

std::string describe(const AttentionSpec& a) {
  std::string s = fmt::format("{}:heads={},rank={}", a.variant, a.heads, a.d_qk);
  if (a.kv_heads != a.heads) s += fmt::format(",kv_heads={}", a.kv_heads);
  if (a.d_v != a.d_qk) s += fmt::format(",v_rank={}", a.d_v);
  if (a.modules != 1) s += fmt::format(",modules={}", a.modules);
  if (a.causal) s += ",causal";
  if (a.window > 0) s += fmt::format(",window={}", a.window);
  if (a.softcap > 0) s += fmt::format(",softcap={}", a.softcap);
  if (a.qk_norm.acts())
    s += fmt::format(",qk-norm={}:{}", to_string(a.qk_norm.kind), to_string(a.qk_norm_span));
  if (!a.rotary_frequencies.empty() && 2 * static_cast<int64_t>(a.rotary_frequencies.size()) < a.d_qk)
    s += fmt::format(",rotated={}", 2 * a.rotary_frequencies.size());
  if (a.sinks) s += ",sinks";
  if (a.rotary_context > 0) s += fmt::format(",longer-than={}", a.rotary_context);
  if (!a.positions) s += ",positions=off";
  for (const int64_t h : a.heads_off) s += fmt::format(",off=H{}", h);
  for (const int64_t h : a.heads_fixed) s += fmt::format(",fixed=H{}", h);
  if (a.truncate_qk > 0) s += fmt::format(",qk<={}", a.truncate_qk);
  if (a.truncate_ov > 0) s += fmt::format(",ov<={}", a.truncate_ov);
  return s;
}

std::string describe(const BlockSpec& block) {
  std::string s;
  const auto word = [&](const std::string& text) { s += (s.empty() ? "" : " ") + text; };
  NormSpec norm;
  std::string place = "post";
  for (const BranchSpec& b : block.branches) {
    if (const AttentionSpec* a = b.attention())
      word((b.part.name == "attention" || b.part.name == "relative_attention" ? "" : b.part.name + "=") +
           describe(*a));
    else
      word(fmt::format("mlp={}:{},width={}",
                       b.part.name == "mlp"         ? "plain"
                       : b.part.name == "gated_mlp" ? "gated"
                                                    : b.part.name,
                       to_string(b.mlp()->activation), b.mlp()->width));
    for (const auto& [name, value] : b.part.options) s += fmt::format(",{}={}", name, value);
    if (const MlpSpec* m = b.mlp()) {
      if (m->share_scale != 1.0) s += fmt::format(",share-scale={}", m->share_scale);
      for (const int64_t e : m->experts_off) s += fmt::format(",off=E{}", e);
    }
    if (b.before.acts()) norm = b.before, place = "pre";
    if (b.behind.acts()) norm = b.behind;
  }
  if (block.mlp_branch() == nullptr) word("mlp=none");
  word(norm.there() ? fmt::format("norm={}:{}", to_string(norm.kind), place) : "norm=none");
  if (block.parallel) word("parallel");
  for (const BranchSpec& b : block.branches) {
    if (!b.skip) word(b.attention() ? "attention-skip=off" : "mlp-skip=off");
    if (b.inside.acts()) word(fmt::format("{}-norm-inside={}", b.name, to_string(b.inside.kind)));
    if (b.scale != 1.0) word(fmt::format("{}-scale={}", b.name, b.scale));
    if (b.channel_scale) word(fmt::format("{}-scale=channels", b.name));
    if (b.skip && b.skip_normed) word(fmt::format("{}-skip=normed", b.name));
    if (!b.reads.empty()) word(fmt::format("{}-reads={}", b.name, b.reads));
  }
  return s;
}

// One line for every run of blocks that are alike.
std::string blocks_of(const StreamSpec& stream, const std::string& name) {
  std::string s;
  for (size_t first = 0; first < stream.blocks.size();) {
    size_t last = first;
    const std::string text = describe(stream.blocks[first]);
    while (last + 1 < stream.blocks.size() && describe(stream.blocks[last + 1]) == text) ++last;
    s += first == last ? fmt::format("{}block {}: {}\n", name, first, text)
                       : fmt::format("{}blocks {}-{}: {}\n", name, first, last, text);
    first = last + 1;
  }
  return s;
}

}  // namespace

std::string describe(const ModelSpec& spec) {
  const EmbeddingSpec& e = spec.embedding;
  std::string s =
      fmt::format("{} width={} positions={} ", spec.architecture, spec.width, to_string(spec.position));
  s += e.vocabulary > 0 ? fmt::format("vocabulary={}\n", e.vocabulary)
       : e.points > 0
           ? fmt::format("points={}\n", e.points)
           : fmt::format("image={} patch={} channels={}\n", e.image_size, e.patch_size, e.channels);
  for (const StreamSpec& source : spec.sources) s += blocks_of(source, source.name + " ");
  return s + blocks_of(spec, "");
}

}  // namespace rankscope
