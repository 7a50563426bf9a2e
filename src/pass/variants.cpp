#include "pass/variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "parts/program.h"
#include "spec/edit.h"
#include "spec/variant_text.h"

namespace rankscope {

namespace {

// The first attention that goes by `variant`; that of the first block where none does.
BranchSpec attention_by(const std::string& variant, const ModelSpec& spec) {
  for (const BlockSpec& block : spec.blocks)
    if (block.attention_branch() &&
        read_variant(block.attention().variant).name == read_variant(variant).name)
      return *block.attention_branch();
  return *spec.blocks.front().attention_branch();
}

// The part that attends by `variant`, a name with options, where `from` did. One that has parameters of its
// own cannot stand in for one that has not; empty where any part will do.
std::string part_for(const std::string& variant, const std::string& from, const ModelSpec& spec) {
  BranchSpec branch = attention_by(from, spec);
  if (part_named(branch.part.name).variant == read_variant(variant).name) return branch.part.name;
  for (const Part* part : parts()) {
    if (part->variant.empty() || part->variant != read_variant(variant).name) continue;
    if (branch.part.name != "attention")
      throw usage_error(fmt::format("{} attention is a part of its own, and cannot stand in for the part {}",
                                    part->variant, branch.part.name));
    const auto names_of = [&] {
      std::vector<std::string> names;
      for (const Parameter& p : program_of(branch, spec.width).parameters) names.push_back(p.name);
      return names;
    };
    const std::vector<std::string> there = names_of();
    branch.part.name = part->name;
    branch.attention()->variant = variant;
    std::vector<std::string> missing;
    for (const std::string& name : names_of())
      if (std::find(there.begin(), there.end(), name) == there.end()) missing.push_back(name);
    if (missing.empty()) return std::string(part->name);
    throw usage_error(fmt::format("{} attention has parameters that the checkpoint has not: {}",
                                  part->variant, fmt::join(missing, ", ")))
        .hint("rankscope study trains networks with them");
  }
  return {};
}

// "softmax=sinkhorn:rounds=3@L3-5"; without the last part, every layer.
ModelSpec with_replacement(const ModelSpec& spec, const std::string& text) {
  const size_t equals = text.find('='), at = text.find('@');
  if (equals == std::string::npos || equals == 0 || at < equals ||
      (at != std::string::npos && text[at + 1] != 'L'))
    throw usage_error(fmt::format("\"{}\" does not say what to replace by what", printable(text)))
        .hint("--replace softmax=doubly_normalised@L3-5");
  const std::string from = text.substr(0, equals), to = text.substr(equals + 1, at - equals - 1);
  const std::string name = read_variant(to).name;
  const auto& known = attention_names();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw unknown_name("attention variant", name, known).in("--replace " + text);
  const std::string part = part_for(to, from, spec);
  const std::string layers = at == std::string::npos ? "" : text.substr(at + 2);
  ModelSpec out =
      with_attention(spec, from, to, parse_layers(layers, spec.depth(), "--replace " + printable(text)));
  for (BlockSpec& block : out.blocks)
    for (BranchSpec& branch : block.branches)
      if (!part.empty() && branch.attention() && branch.attention()->variant == to) branch.part.name = part;
  return out;
}

}  // namespace

namespace {

// A rank that no head's map is above cuts nothing: it was meant for another model.
void require_cut(const std::string& ranks, const ModelSpec& spec) {
  for (size_t at = 0; at <= ranks.size();) {
    const size_t end = std::min(ranks.find('+', at), ranks.size());
    const std::string item = ranks.substr(at, end - at);
    at = end + 1;
    if (with_rank(spec, item) != spec) continue;
    int64_t widest = 0;
    const auto look = [&](const StreamSpec& stream) {
      for (const BlockSpec& block : stream.blocks)
        for (const BranchSpec& b : block.branches)
          if (b.attention())
            widest = std::max(widest,
                              highest_rank(item[0] == 'q' ? b.attention()->d_qk : b.attention()->d_v, spec));
    };
    look(spec);
    for (const StreamSpec& s : spec.sources) look(s);
    const std::string map = item.substr(0, 2);
    throw usage_error(fmt::format("there is nothing to cut: the {} maps of this model have rank {} at most",
                                  map == "qk" ? "QK" : "OV", widest))
        .in("--rank " + printable(ranks))
        .hint(widest > 1 ? fmt::format("{0}=1 to {0}={1}, or {0}=auto", map, widest - 1) : "");
  }
}

}  // namespace

std::vector<Variant> make_variants(const ScanRequest& request, const ModelSpec& spec) {
  std::vector<Variant> variants{{"full", spec, 0, 0}};
  const auto add = [&](std::string name, ModelSpec edited) {
    const bool twice = std::any_of(variants.begin(), variants.end(), [&](auto& v) { return v.name == name; });
    if (twice) throw usage_error(fmt::format("the variant {} is asked for twice", name));
    variants.push_back({std::move(name), std::move(edited), 0, 0});
  };
  for (const std::string& parts : request.off) add("-" + parts, without(spec, parts));
  for (const std::string& ranks : request.rank) {
    if (is_rank_curve(ranks)) continue;
    if (ranks != "qk=auto" && ranks != "ov=auto") {
      add("rank:" + ranks, with_rank(spec, ranks));
      require_cut(ranks, spec);
      continue;
    }
    int64_t widest = 0;
    for (const BlockSpec& b : spec.blocks)
      if (const BranchSpec* branch = b.attention_branch())
        widest = std::max(
            widest,
            highest_rank(ranks[0] == 'q' ? branch->attention()->d_qk : branch->attention()->d_v, spec));
    for (int64_t r = 1; r < widest; r *= 2) {
      const std::string one = fmt::format("{}={}", ranks.substr(0, 2), r);
      add("rank:" + one, with_rank(spec, one));
    }
  }
  for (const std::string& text : request.replace) add("replace:" + text, with_replacement(spec, text));
  return variants;
}

bool is_rank_curve(const std::string& words) {
  return words.find(',') != std::string::npos || words.rfind("kv=", 0) == 0;
}

std::vector<bool> parse_layers(const std::string& text, int64_t depth, const std::string& option) {
  if (text.empty()) return std::vector<bool>(static_cast<size_t>(depth), true);
  std::vector<bool> chosen(static_cast<size_t>(depth), false);
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto bad = [&] {
    return usage_error(fmt::format("\"{}\" does not list layers", printable(text)))
        .in(option)
        .hint("layers are listed as 0-5,11");
  };
  const auto number = [&] {
    int64_t value = -1;
    const auto [rest, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || value < 0) throw bad();
    at = rest;
    if (value >= depth)
      throw usage_error(fmt::format("there is no layer {}: the model has {}, counted from 0", value, depth))
          .in(option);
    return value;
  };
  for (;;) {
    const int64_t first = number();
    int64_t last = first;
    if (at != end && *at == '-') {
      ++at;
      last = number();
    }
    if (last < first) throw bad();
    for (int64_t l = first; l <= last; ++l) chosen[static_cast<size_t>(l)] = true;
    if (at == end) return chosen;
    if (*at++ != ',') throw bad();
  }
}

namespace {

// Lenses that have a word in their own name (attn: in attention, letter by letter), then those that have it
// in the name of a metric; of neither, those that say it of themselves.
std::vector<std::string> lenses_about(std::string_view word) {
  std::vector<std::string> named, measuring, saying;
  if (word.size() < 3) return {};
  const auto abbreviates = [&](std::string_view name) {
    size_t found = 0;
    for (const char c : name)
      if (found < word.size() && c == word[found]) ++found;
    return name.front() == word.front() && found == word.size() && 2 * word.size() <= name.size();
  };
  for (const Lens* lens : lenses()) {
    const std::string_view name = lens->name;
    if (name.find(word) != name.npos || abbreviates(name))
      named.emplace_back(name);
    else if (std::any_of(lens->metrics.begin(), lens->metrics.end(),
                         [&](const MetricInfo& m) { return m.name.find(word) != m.name.npos; }))
      measuring.emplace_back(name);
    else if (std::string_view(lens->summary).find(word) != std::string_view::npos)
      saying.emplace_back(name);
  }
  named.insert(named.end(), measuring.begin(), measuring.end());
  return named.empty() ? saying : named;
}

// "rank" is no lens, but several measure one. "eff.rank" is a heading of tables: its last word tells.
Error unknown_lens(const std::string& name, const std::vector<std::string>& known) {
  std::vector<std::string> measuring = lenses_about(name);
  if (const size_t dot = name.rfind('.'); measuring.empty() && dot != name.npos)
    measuring = lenses_about(std::string_view(name).substr(dot + 1));
  if (measuring.empty()) return unknown_name("lens", name, known, "rankscope lenses");
  return usage_error(fmt::format("there is no lens \"{}\"", printable(name)))
      .hint(fmt::format("{} measure{} it   (rankscope lenses shows all {})", fmt::join(measuring, ", "),
                        measuring.size() == 1 ? "s" : "", known.size()));
}

}  // namespace

std::vector<const Lens*> choose_lenses(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const Lens* lens : lenses()) known.emplace_back(lens->name);
  std::vector<const Lens*> out;
  if (names.empty())
    std::copy_if(lenses().begin(), lenses().end(), std::back_inserter(out),
                 [](auto* l) { return !l->on_request; });
  for (const std::string& name : names) {
    const auto it = std::find(known.begin(), known.end(), name);
    if (it == known.end()) throw unknown_lens(name, known);
    out.push_back(lenses()[static_cast<size_t>(it - known.begin())]);
  }
  return out;
}

}  // namespace rankscope
