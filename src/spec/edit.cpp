#include "spec/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/error.h"
#include "spec/variant_text.h"

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

std::vector<std::string> stream_names(const ModelSpec& spec) {
  std::vector<std::string> out;
  for (const StreamSpec& s : spec.sources) out.push_back(s.name);
  if (!out.empty()) out.insert(out.end(), {"decoder", "cross"});
  return out;
}

// "head:L5H3", "expert:L3E5", "head:encoder.L5H3": one of many in one block.
struct Place {
  BlockSpec* block = nullptr;
  std::string stream;
  int64_t layer = 0, number = 0;
};

// Two numbers in some other spelling ("head:2.1", "L2.H1", "2-1") as they should be written, "head:L2H1"; one
// or none says nothing, neither do three, and a network without such a layer has nothing of that name.
std::optional<std::string> respelled(const ModelSpec& spec, std::string_view text, std::string_view kind,
                                     char letter) {
  constexpr std::string_view kDigits = "0123456789";
  std::vector<int64_t> numbers;
  while (!text.empty()) {
    int64_t number = 0;
    if (take_number(text, number))
      numbers.push_back(number);
    else if (kDigits.find(text.front()) != kDigits.npos)
      return std::nullopt;  // beyond what a number may be
    else
      text.remove_prefix(1);
  }
  if (numbers.size() != 2 || numbers[0] >= spec.depth()) return std::nullopt;
  return fmt::format("{}:L{}{}{}", kind, numbers[0], letter, numbers[1]);
}

Place place_of(ModelSpec& spec, std::string_view part, char letter, const char* what) {
  Place p;
  const std::string_view kind = part.substr(0, part.find(':'));
  std::string_view rest = part.substr(part.find(':') + 1);
  const std::string meant =
      respelled(spec, part, kind, letter).value_or(fmt::format("{}:L0{}0", kind, letter));
  const auto misspelled = [&] {
    return usage_error(fmt::format("\"{}\" does not name {}", printable(part), what)).hint("write " + meant);
  };
  if (const size_t dot = rest.find('.'); dot != std::string_view::npos) {
    p.stream = rest.substr(0, dot);
    rest.remove_prefix(dot + 1);
    if (std::any_of(p.stream.begin(), p.stream.end(), [](char c) { return c >= '0' && c <= '9'; }))
      throw misspelled();
    const std::vector<std::string> known = stream_names(spec);
    if (known.empty())
      throw usage_error(
          fmt::format("this network has one stream, and none called \"{}\"", printable(p.stream)))
          .in(fmt::format("--off {}", printable(part)))
          .hint("--off " + meant);
    if (std::find(known.begin(), known.end(), p.stream) == known.end())
      throw unknown_name("stream", p.stream, known);
  }
  const auto next = [&](char c) {
    const bool there = !rest.empty() && rest.front() == c;
    if (there) rest.remove_prefix(1);
    return there;
  };
  if (!next('L') || !take_number(rest, p.layer) || !next(letter) || !take_number(rest, p.number) ||
      !rest.empty())
    throw misspelled();
  StreamSpec* stream = &spec;
  for (StreamSpec& s : spec.sources)
    if (s.name == p.stream) stream = &s;
  if (p.layer >= stream->depth())
    throw usage_error(fmt::format("there is no layer {}: the {} has {}, counted from 0", p.layer,
                                  p.stream.empty()      ? "model"
                                  : p.stream == "cross" ? "decoder"
                                                        : p.stream,
                                  stream->depth()));
  p.block = &stream->blocks[static_cast<size_t>(p.layer)];
  return p;
}

void add_once(std::vector<int64_t>& sorted, int64_t number) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), number);
  if (at == sorted.end() || *at != number) sorted.insert(at, number);
}

void remove_head(ModelSpec& spec, std::string_view part) {
  const Place p = place_of(spec, part, 'H', "a head");
  BranchSpec* branch = p.stream == "cross" ? nullptr : p.block->attention_branch();
  for (BranchSpec& b : p.block->branches)
    if (p.stream == b.name && b.attention()) branch = &b;
  if (branch == nullptr)
    throw usage_error(fmt::format("layer {} has no such attention", p.layer))
        .in(fmt::format("--off {}", printable(part)));
  AttentionSpec& a = *branch->attention();
  if (p.number >= a.heads)
    throw usage_error(fmt::format("there is no head {} in layer {}: it has {}, counted from 0", p.number,
                                  p.layer, a.heads));
  add_once(a.heads_off, p.number);
}

// That expert writes zero.
void remove_expert(ModelSpec& spec, std::string_view part) {
  const Place p = place_of(spec, part, 'E', "an expert");
  BranchSpec* b = p.block->mlp_branch();
  if (b == nullptr || b->part.name != "experts")
    throw usage_error(fmt::format("layer {} has no experts", p.layer));
  const auto count = b->part.options.find("experts");
  if (count != b->part.options.end() && p.number >= static_cast<int64_t>(count->second))
    throw usage_error(fmt::format("there is no expert {} in layer {}: it has {}, counted from 0", p.number,
                                  p.layer, count->second));
  add_once(b->mlp()->experts_off, p.number);
}

void remove_from(BranchSpec& branch, std::string_view part) {
  AttentionSpec* attention = branch.attention();
  if (part == "skip" || part == (attention ? "attention-skip" : "mlp-skip")) branch.skip = false;
  if (part == "norm") branch.before.off = branch.inside.off = branch.behind.off = true;
  if (part == "norm" && attention) attention->qk_norm.off = true;
  if (part == "position" && attention) attention->positions = false;
}

void remove_from(StreamSpec& stream, std::string_view part) {
  if (part == "norm") stream.final_norm.off = true;
  if (part == "position") stream.embedding.use_positions = false;
  for (BlockSpec& block : stream.blocks) {
    if (part == "mlp") std::erase_if(block.branches, [](const BranchSpec& b) { return b.mlp(); });
    for (BranchSpec& b : block.branches) remove_from(b, part);
  }
}

void require_two_skips(const StreamSpec& stream, std::string_view part) {
  if ((part == "attention-skip" || part == "mlp-skip") && has_one_skip(stream))
    throw usage_error("the blocks of this model are parallel and have one skip for attention and MLP")
        .in(fmt::format("--off {}", part))
        .hint("--off skip");
}

void remove_part(ModelSpec& spec, std::string_view part) {
  if (part.substr(0, 5) == "head:") return remove_head(spec, part);
  if (part.substr(0, 7) == "expert:") return remove_expert(spec, part);
  const auto& known = part_names();
  if (std::find(known.begin(), known.end(), part) == known.end()) {
    const auto head = respelled(spec, part, "head", 'H');
    if (head || part.substr(0, 4) == "head")
      throw usage_error(fmt::format("there is no part \"{}\"", printable(part)))
          .hint(fmt::format("a head is written {}", head.value_or("head:L5H3, layer and number in it")));
    if (part.find(',') != part.npos) {
      std::string joined(part);
      std::replace(joined.begin(), joined.end(), ',', '+');
      throw usage_error(fmt::format("there is no part \"{}\"", printable(part)))
          .hint(fmt::format("parts that go together are joined by +: {}", printable(joined)));
    }
    std::vector<std::string> all = known;
    all.emplace_back("head:L5H3");
    all.emplace_back("expert:L3E5");
    throw unknown_name("part", part, all, "rankscope scan --help");
  }
  require_two_skips(spec, part);
  for (const StreamSpec& s : spec.sources) require_two_skips(s, part);
  for (StreamSpec& s : spec.sources) remove_from(s, part);
  remove_from(static_cast<StreamSpec&>(spec), part);
}

}  // namespace

const std::vector<std::string>& part_names() {
  static const std::vector<std::string> names{"skip", "attention-skip", "mlp-skip",
                                              "mlp",  "norm",           "position"};
  return names;
}

bool has_one_skip(const StreamSpec& stream) {
  return std::any_of(stream.blocks.begin(), stream.blocks.end(),
                     [](const BlockSpec& b) { return b.parallel; });
}

ModelSpec without(ModelSpec spec, std::string_view parts) {
  for (const std::string_view part : split(parts, '+')) remove_part(spec, part);
  return spec;
}

int64_t highest_rank(int64_t head_width, const ModelSpec& spec) { return std::min(head_width, spec.width); }

ModelSpec with_rank(ModelSpec spec, std::string_view ranks) {
  std::set<std::string_view> maps;
  for (std::string_view item : split(ranks, '+')) {
    if (!maps.insert(item.substr(0, 3)).second)
      throw usage_error(fmt::format("\"{}\" cuts one map twice", printable(ranks))).hint("write qk=8+ov=16");
    const bool qk = item.substr(0, 3) == "qk=", ov = item.substr(0, 3) == "ov=";
    int64_t rank = 0;
    std::string_view digits = item.substr(std::min<size_t>(3, item.size()));
    if ((!qk && !ov) || !take_number(digits, rank) || !digits.empty() || rank < 1)
      throw usage_error(fmt::format("\"{}\" is not a rank", printable(item))).hint("write qk=8 or ov=16");
    // A rank that no map of the head exceeds changes nothing and stays out of the spec, so that it compares
    // equal.
    const auto cut = [&](StreamSpec& stream) {
      for (BlockSpec& block : stream.blocks)
        for (BranchSpec& b : block.branches) {
          AttentionSpec* a = b.attention();
          if (a && qk && rank < highest_rank(a->d_qk, spec)) a->truncate_qk = rank;
          if (a && ov && rank < highest_rank(a->d_v, spec)) a->truncate_ov = rank;
        }
    };
    for (StreamSpec& s : spec.sources) cut(s);
    cut(spec);
  }
  return spec;
}

ModelSpec with_attention(ModelSpec spec, std::string_view from, std::string_view to,
                         const std::vector<bool>& layers) {
  bool found = false;
  for (size_t l = 0; l < spec.blocks.size(); ++l)
    for (BranchSpec& b : spec.blocks[l].branches) {
      AttentionSpec* a = b.attention();
      // "delta" means every delta rule, "delta:epsilon=1e-06" that one.
      if (a == nullptr || !layers[l] || (a->variant != from && read_variant(a->variant).name != from))
        continue;
      a->variant = to;
      found = true;
    }
  if (!found)
    throw usage_error(fmt::format("there is no {} attention in these layers to replace", printable(from)))
        .hint("rankscope inspect names what there is");
  return spec;
}

}  // namespace rankscope
