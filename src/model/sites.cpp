#include "model/sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "attention/variant.h"
#include "base/error.h"
#include "model/states.h"
#include "parts/program.h"

namespace rankscope {
namespace {

using Model = ModelSpec;
using Block = BlockSpec;

std::string tokens_by_width(const Model& m, const Block&) { return fmt::format("tokens x {}", m.width); }
std::string by_head(int64_t heads, int64_t width) {
  return fmt::format("tokens x {} heads x {}", heads, width);
}
// As the program of the block's attention shows `site`: parts differ in what several heads share.
std::string shown(const Model& m, const Block& b, std::string_view site) {
  for (const Operation& o : program_of(*b.attention_branch(), m.width).operations)
    if (o.site == site) return by_head(o.heads, o.width / o.heads);
  return "";
}
std::string queries(const Model& m, const Block& b) { return shown(m, b, "attn.hook_q"); }
std::string keys(const Model& m, const Block& b) { return shown(m, b, "attn.hook_k"); }
std::string values(const Model& m, const Block& b) {
  const std::string text = shown(m, b, "attn.hook_v");  // none where the values are the tokens
  return text.empty() ? by_head(b.attention().kv_heads, b.attention().d_v) : text;
}
std::string mixed_values(const Model&, const Block& b) {
  return by_head(b.attention().heads, b.attention().d_v);
}
std::string pairs(const Model&, const Block& b) {
  return fmt::format("{} heads x queries x keys", b.attention().heads);
}
std::string sinks(const Model&, const Block& b) {
  return fmt::format("tokens x {} heads", b.attention().heads);
}
std::string states(const Model&, const Block& b) {
  return fmt::format("{} heads x ({} a state) x {}", b.attention().heads, b.attention().d_qk,
                     b.attention().d_v);
}
std::string result(const Model& m, const Block& b) { return by_head(b.attention().heads, m.width); }
// The width of an MLP's hidden layer; 0 where it has none.
int64_t hidden_width(const Model& m, const Block& b) {
  if (b.mlp_branch() == nullptr) return 0;
  for (const Operation& o : program_of(*b.mlp_branch(), m.width).operations)
    if (o.site == "mlp.hook_post") return o.width;
  return 0;
}
std::string hidden(const Model& m, const Block& b) { return fmt::format("tokens x {}", hidden_width(m, b)); }
std::string maps(const Model& m, const Block& b) {
  const AttentionSpec& a = b.attention();
  return fmt::format("{} heads, width {} to {} and {}", a.heads, m.width, a.d_qk, a.d_v);
}

bool always(const Model&, const Block&) { return true; }
bool attends(const Model&, const Block& b) { return b.attention_branch() != nullptr; }
// Behind a convolution there is no map of one token to a head's query, key or value.
bool has_maps(const Model& m, const Block& b) {
  if (b.attention_branch() == nullptr) return false;
  const Program program = program_of(*b.attention_branch(), m.width);
  return std::ranges::none_of(program.operations,
                              [](const Operation& o) { return o.kind == Operation::Kind::convolve; });
}
bool pre_norm(const Model&, const Block& b) {
  return b.attention_branch() && b.attention_branch()->before.there();
}
bool has_scores(const Model&, const Block& b) {
  return b.attention_branch() && attention_variant(b.attention().variant).has_scores;
}
bool has_pattern(const Model&, const Block& b) {
  return b.attention_branch() && attention_variant(b.attention().variant).shares;
}
bool has_mixer(const Model& m, const Block& b) { return b.attention_branch() && !has_pattern(m, b); }
bool has_sinks(const Model&, const Block& b) { return b.attention_branch() && b.attention().sinks; }
bool has_state(const Model&, const Block& b) {
  return b.attention_branch() && b.attention_branch()->reads.empty() && keeps_state(b.attention());
}
bool has_mlp(const Model&, const Block& b) { return b.mlp_branch() != nullptr; }
bool pre_norm_mlp(const Model&, const Block& b) { return b.mlp_branch() && b.mlp_branch()->before.there(); }
bool has_hidden(const Model& m, const Block& b) { return hidden_width(m, b) > 0; }
bool has_experts(const Model&, const Block& b) {
  return b.mlp_branch() != nullptr && b.mlp_branch()->part.name == "experts";
}
bool final_norm(const Model& m, const Block&) { return m.final_norm.there(); }

std::vector<SiteInfo> common_sites() {
  using enum SiteForm;
  using enum ShownBy;
  return {
      {"hook_resid_pre", whole, input, "the residual stream before the block", tokens_by_width, always},
      {"ln1.hook_normalized", whole, step, "pre-norm: what attention reads", tokens_by_width, pre_norm},
      {"attn.hook_q", whole, part, "queries, before positions turn them", queries, attends},
      {"attn.hook_k", whole, part, "keys, before positions turn them", keys, attends},
      {"attn.hook_v", whole, part, "values", values, attends},
      {"attn.hook_attn_scores",
       tiles,
       part,
       "scaled scores; -inf where the mask hides a key",
       pairs,
       has_scores,
       true,
       {},
       /*finite=*/false},
      {"attn.hook_pattern", tiles, part, "attention: how much each query takes of each key", pairs,
       has_pattern},
      {"attn.hook_mixer", tiles, part,
       "what multiplies the values where entries are no shares (sigmoid, linear, differential attention)",
       pairs, has_mixer},
      {"attn.hook_sink", whole, part, "what each query gives to the learned sink of a head", sinks,
       has_sinks},
      {"attn.hook_state",
       tiles,
       part,
       "what linear attention holds after 2, 4, 8, ... and after all tokens: states one below the other",
       states,
       has_state,
       true,
       {},
       /*finite=*/false},  // the rows are no tokens; what heads carry is watched
      {"attn.hook_z", whole, part,
       "what the output map reads: attention times values, gated where there is a gate; 0 for heads taken "
       "out",
       mixed_values, attends},
      {"attn.hook_result", factored, part, "what each head writes: z times its part of W_O", result, attends,
       true, /*made_of=*/"attn.hook_z"},
      {"attn", weights, pass, "W_Q, W_K, W_V and W_O of the block, and the gain of its first norm", maps,
       has_maps},
      {"hook_attn_out", whole, step, "what attention writes: all heads and the bias", tokens_by_width,
       attends},
      {"hook_resid_mid", whole, step, "between attention and MLP, post-norm: after the norm", tokens_by_width,
       has_mlp},
      {"ln2.hook_normalized", whole, step, "pre-norm: what the MLP reads", tokens_by_width, pre_norm_mlp},
      {"mlp.hook_pre", whole, part, "what the activation is applied to; of a gated MLP the gate", hidden,
       has_hidden},
      {"mlp.hook_post", whole, part, "what the MLP's last matrix reads", hidden, has_hidden},
      {"mlp.hook_expert_out", SiteForm::experts, part, "what each expert writes into the tokens that take it",
       tokens_by_width, has_experts},
      {"hook_mlp_out", whole, step, "what the MLP writes", tokens_by_width, has_mlp},
      {"hook_resid_post", whole, output, "the block's output, post-norm: after the norm", tokens_by_width,
       always},
      {"ln_final.hook_normalized", whole, pass, "after the norm behind the last block", tokens_by_width,
       final_norm, false}};
}

// What the attention that looks at another stream shows: what the block's own shows, under the name "cross".
// Its keys and values belong to that stream, whose own sites show where they come from.
std::vector<SiteInfo> cross_sites(const std::vector<SiteInfo>& own) {
  static std::deque<std::string> kept;  // the names are views
  const auto keep = [](std::string text) -> std::string_view { return kept.emplace_back(std::move(text)); };
  const auto as_cross = [](std::string_view name) {
    return name.starts_with("attn")  ? "cross" + std::string(name.substr(4))
           : name == "hook_attn_out" ? std::string("hook_cross_out")
                                     : std::string("ln_cross.hook_normalized");
  };
  const auto seen = [](const Block& b) { return attention_alone(b, "cross"); };
  std::vector<SiteInfo> out;
  for (const SiteInfo& site : own) {
    const bool attention =
        site.name.starts_with("attn") && site.name != "attn.hook_k" && site.name != "attn.hook_v";
    if (!attention && site.name != "hook_attn_out" && site.name != "ln1.hook_normalized") continue;
    SiteInfo cross = site;
    cross.name = keep(as_cross(site.name));
    cross.meaning = keep("of the attention to another stream: " + std::string(site.meaning));
    cross.shape = [site, seen](const Model& m, const Block& b) { return site.shape(m, seen(b)); };
    cross.present = [site, seen](const Model& m, const Block& b) {
      return cross_branch(b) != nullptr && site.present(m, seen(b));
    };
    if (!site.made_of.empty()) cross.made_of = keep(as_cross(site.made_of));
    cross.like = site.name;
    cross.of_cross = true;
    out.push_back(std::move(cross));
  }
  out.push_back({.name = "hook_resid_cross",
                 .form = SiteForm::whole,
                 .shown_by = ShownBy::step,
                 .meaning = "between attention and the attention to another stream",
                 .shape = tokens_by_width,
                 .present = [](const Model&, const Block& b) { return cross_branch(b) != nullptr; },
                 .like = "hook_resid_mid"});
  return out;
}

// The branch of the block that runs the part; nullptr where none does.
const BranchSpec* branch_with(const Block& block, std::string_view part) {
  for (const BranchSpec& b : block.branches)
    if (b.part.name == part) return &b;
  return nullptr;
}

SiteInfo site_of(const Part& part, const PartSite& site) {
  return {site.name,
          SiteForm::whole,
          ShownBy::part,
          site.meaning,
          [&part, &site](const Model& m, const Block& b) {
            for (const Operation& o : program_of(*branch_with(b, part.name), m.width).operations)
              if (o.site == site.name)
                return o.heads > 0 ? by_head(o.heads, o.width / o.heads)
                                   : fmt::format("tokens x {}", o.width);
            return std::string();
          },
          [&part](const Model&, const Block& b) { return branch_with(b, part.name) != nullptr; }};
}

}  // namespace

std::string_view to_string(SiteForm form) {
  switch (form) {
    case SiteForm::whole:
      return "whole";
    case SiteForm::tiles:
      return "tiles";
    case SiteForm::factored:
      return "factored";
    case SiteForm::experts:
      return "experts";
    case SiteForm::weights:
      return "weights";
  }
  return "";
}

const std::vector<SiteInfo>& sites() {
  static const std::vector<SiteInfo> list = [] {
    std::vector<SiteInfo> all = common_sites();
    for (SiteInfo& site : cross_sites(all)) all.push_back(std::move(site));
    for (const Part* part : parts())
      for (const PartSite& site : part->sites) all.push_back(site_of(*part, site));
    return all;
  }();
  return list;
}

const BranchSpec* cross_branch(const BlockSpec& block) {
  for (const BranchSpec& b : block.branches)
    if (b.name == "cross" && b.attention() != nullptr) return &b;
  return nullptr;
}

BlockSpec attention_alone(const BlockSpec& block, std::string_view branch) {
  BlockSpec alone;
  alone.weights = block.weights;
  for (const BranchSpec& b : block.branches)
    if (b.name == branch) alone.branches.push_back(b);
  for (BranchSpec& b : alone.branches) {
    b.name = "attn";
    b.norm_name = "ln1";
  }
  return alone;
}

std::string_view within_block(std::string_view name) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!name.starts_with(kBlocks)) return name;
  const size_t digits = name.find_first_not_of("0123456789", kBlocks.size());
  const bool numbered = digits != std::string_view::npos && digits > kBlocks.size() && name[digits] == '.';
  return numbered ? name.substr(digits + 1) : name;
}

const SiteInfo& site_named(std::string_view name) {
  std::vector<std::string> known;
  for (const SiteInfo& site : sites()) {
    if (site.name == (site.in_block ? within_block(name) : name)) return site;
    known.emplace_back(site.name);
  }
  throw unknown_name("site", within_block(name), known, "rankscope lenses --sites");
}

}  // namespace rankscope
