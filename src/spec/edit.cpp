#include "spec/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace rankscope {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

// Parses digits at the front of `text` and removes them; false when there are none.
bool take_number(std::string_view& text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value >= 0;
}

void remove_head(ModelSpec& spec, std::string_view part) {
  std::string_view rest = part.substr(std::string_view("head:").size());
  int64_t layer = 0, head = 0;
  bool good = !rest.empty() && rest.front() == 'L';
  if (good) rest.remove_prefix(1);
  good = good && take_number(rest, layer) && !rest.empty() && rest.front() == 'H';
  if (good) rest.remove_prefix(1);
  if (!good || !take_number(rest, head) || !rest.empty())
    throw usage_error(fmt::format("\"{}\" does not name a head", printable(part))).hint("write head:L5H3");
  if (layer >= spec.depth())
    throw usage_error(
        fmt::format("there is no layer {}: the model has {}, counted from 0", layer, spec.depth()));
  AttentionSpec& a = spec.blocks[static_cast<size_t>(layer)].attention();
  if (head >= a.heads)
    throw usage_error(
        fmt::format("there is no head {} in layer {}: it has {}, counted from 0", head, layer, a.heads));
  a.heads_off.push_back(head);
  std::sort(a.heads_off.begin(), a.heads_off.end());
  a.heads_off.erase(std::unique(a.heads_off.begin(), a.heads_off.end()), a.heads_off.end());
}

// "expert:L3E5": that expert writes zero.
void remove_expert(ModelSpec& spec, std::string_view part) {
  std::string_view rest = part.substr(std::string_view("expert:").size());
  int64_t layer = 0, expert = 0;
  const auto letter = [&](char c) {
    const bool there = !rest.empty() && rest.front() == c;
    if (there) rest.remove_prefix(1);
    return there;
  };
  if (!letter('L') || !take_number(rest, layer) || !letter('E') || !take_number(rest, expert) ||
      !rest.empty())
    throw usage_error(fmt::format("\"{}\" does not name an expert", printable(part)))
        .hint("write expert:L3E5");
  if (layer >= spec.depth())
    throw usage_error(
        fmt::format("there is no layer {}: the model has {}, counted from 0", layer, spec.depth()));
  BranchSpec* b = spec.blocks[static_cast<size_t>(layer)].mlp_branch();
  if (b == nullptr || b->part.name != "experts")
    throw usage_error(fmt::format("layer {} has no experts", layer));
  const auto count = b->part.options.find("experts");
  if (count != b->part.options.end() && expert >= static_cast<int64_t>(count->second))
    throw usage_error(fmt::format("there is no expert {} in layer {}: it has {}, counted from 0", expert,
                                  layer, count->second));
  std::vector<int64_t>& off = b->mlp()->experts_off;
  off.push_back(expert);
  std::sort(off.begin(), off.end());
  off.erase(std::unique(off.begin(), off.end()), off.end());
}

void remove_from(BranchSpec& branch, std::string_view part) {
  AttentionSpec* attention = branch.attention();
  if (part == "skip" || part == (attention ? "attention-skip" : "mlp-skip")) branch.skip = false;
  if (part == "norm") branch.before.off = branch.inside.off = branch.behind.off = true;
  if (part == "norm" && attention) attention->qk_norm.off = true;
  if (part == "position" && attention) attention->positions = false;
}

void remove_part(ModelSpec& spec, std::string_view part) {
  if (part.substr(0, 5) == "head:") return remove_head(spec, part);
  if (part.substr(0, 7) == "expert:") return remove_expert(spec, part);
  const auto& known = part_names();
  if (std::find(known.begin(), known.end(), part) == known.end()) {
    std::vector<std::string> all = known;
    all.emplace_back("head:L5H3");
    all.emplace_back("expert:L3E5");
    throw unknown_name("part", part, all, "rankscope scan --help");
  }
  if (part == "norm") spec.final_norm.off = true;
  if (part == "position") spec.embedding.use_positions = false;
  for (BlockSpec& block : spec.blocks) {
    if (part == "mlp") std::erase_if(block.branches, [](const BranchSpec& b) { return b.mlp(); });
    for (BranchSpec& b : block.branches) remove_from(b, part);
  }
}

}  // namespace

const std::vector<std::string>& part_names() {
  static const std::vector<std::string> names{"skip", "attention-skip", "mlp-skip",
                                              "mlp",  "norm",           "position"};
  return names;
}

ModelSpec without(ModelSpec spec, std::string_view parts) {
  for (const std::string_view part : split(parts, '+')) remove_part(spec, part);
  return spec;
}

ModelSpec with_rank(ModelSpec spec, std::string_view ranks) {
  for (std::string_view item : split(ranks, '+')) {
    const bool qk = item.substr(0, 3) == "qk=", ov = item.substr(0, 3) == "ov=";
    int64_t rank = 0;
    std::string_view digits = item.substr(std::min<size_t>(3, item.size()));
    if ((!qk && !ov) || !take_number(digits, rank) || !digits.empty() || rank < 1)
      throw usage_error(fmt::format("\"{}\" is not a rank", printable(item))).hint("write qk=8 or ov=16");
    // A rank at or above the head's width changes nothing and stays out of the spec, so that it compares
    // equal.
    for (BlockSpec& block : spec.blocks)
      for (BranchSpec& b : block.branches) {
        AttentionSpec* a = b.attention();
        if (a && qk && rank < a->d_qk) a->truncate_qk = rank;
        if (a && ov && rank < a->d_v) a->truncate_ov = rank;
      }
  }
  return spec;
}

ModelSpec with_attention(ModelSpec spec, std::string_view from, std::string_view to,
                         const std::vector<bool>& layers) {
  bool found = false;
  for (size_t l = 0; l < spec.blocks.size(); ++l)
    for (BranchSpec& b : spec.blocks[l].branches) {
      AttentionSpec* a = b.attention();
      if (a == nullptr || !layers[l] || a->variant != from) continue;
      a->variant = to;
      found = true;
    }
  if (!found)
    throw usage_error(fmt::format("there is no {} attention in these layers to replace", printable(from)))
        .hint("rankscope inspect names what there is");
  return spec;
}

}  // namespace rankscope
