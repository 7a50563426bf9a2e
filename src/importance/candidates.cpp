#include "importance/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "importance/factored.h"
#include "importance/planned_model.h"
#include "importance/rank_curves.h"

namespace rankscope {
namespace {

constexpr double kLeastCost = 1e-6;  // nats: what costs less is free, and ordered by what it saves

void add_ranks(const Checkpoint& checkpoint, const std::string& map, std::vector<Candidate>& out,
               std::vector<std::string>& notes) {
  const ModelSpec& spec = checkpoint.spec();
  int64_t left_out = 0;
  for (int64_t l = 0; l < spec.depth(); ++l) {
    const BlockSpec& block = spec.blocks[static_cast<size_t>(l)];
    if (!can_write(checkpoint, l, map)) {
      ++left_out;
      continue;
    }
    for (const int64_t part : {8, 4, 2}) {
      const int64_t rank = full_rank(spec, block, map) / part;
      if (rank < 1) continue;
      const Candidate c{.layer = l, .map = map, .rank = rank};
      if (saved_beside({}, c, spec) > 0) out.push_back(c);
    }
  }
  if (left_out > 0)
    notes.push_back(
        fmt::format("the {} maps of {} layers were not tried: cut, they have no place in this architecture",
                    map, left_out));
}

void apply(const Candidate& c, BlockEdit& edit) {
  AttentionSpec& a = edit.spec.attention();
  const auto lower = [&](int64_t& rank) { rank = rank == 0 ? c.rank : std::min(rank, c.rank); };
  if (c.head >= 0) {
    if (std::find(a.heads_off.begin(), a.heads_off.end(), c.head) != a.heads_off.end()) return;
    a.heads_off.push_back(c.head);
    std::sort(a.heads_off.begin(), a.heads_off.end());
  } else if (c.map == "qk") {
    lower(a.truncate_qk);
  } else if (c.map == "ov") {
    lower(a.truncate_ov);
  } else {
    lower(edit.kv_rank);
  }
  // Keys and values of a latent make products of no higher rank: what is beyond is rounding.
  const auto at_most_latent = [&](int64_t& rank) { rank = std::min(rank, edit.kv_rank); };
  if (edit.kv_rank > 0 && !is_turned(a) && a.variant == "softmax") at_most_latent(a.truncate_qk);
  if (edit.kv_rank > 0) at_most_latent(a.truncate_ov);
  if (heads_kept(a) == 0) a.truncate_qk = a.truncate_ov = edit.kv_rank = 0;
}

BlockEdit edit_of(const Edits& edits, int64_t layer, const ModelSpec& spec) {
  const auto it = edits.find(layer);
  return it != edits.end() ? it->second : BlockEdit{spec.blocks[static_cast<size_t>(layer)], 0};
}

int64_t factored_parameters(const BlockEdit& edit, const ModelSpec& spec) {
  return factored_size(*edit.spec.attention_branch(), edit.kv_rank, spec.width).parameters;
}

}  // namespace

std::string Candidate::what() const {
  if (head >= 0) return fmt::format("head L{}H{}", layer, head);
  const char* name = map == "qk" ? "QK" : map == "ov" ? "OV" : "KV";
  return fmt::format("{} of layer {} to rank {}", name, layer, rank);
}

Variation Candidate::alone(const ModelSpec& spec) const {
  if (head >= 0) return {layer, Unit{UnitKind::head, layer, head}, Replacement::zero, {}};
  return {layer,
          {},
          Replacement::zero,
          {{layer, cut_to(spec, spec.blocks[static_cast<size_t>(layer)], map, rank)}}};
}

std::vector<Candidate> candidates_of(const Checkpoint& checkpoint, std::vector<std::string>& notes) {
  std::vector<Candidate> out;
  for (const Unit& u : units_of(checkpoint.spec(), UnitKind::head))
    if (can_write(checkpoint, u.layer, "head")) out.push_back({.layer = u.layer, .head = u.index});
  for (const char* map : {"qk", "ov", "kv"}) add_ranks(checkpoint, map, out, notes);
  return out;
}

Edits with(Edits edits, const std::vector<const Candidate*>& more, const ModelSpec& spec) {
  for (const Candidate* c : more) {
    BlockEdit edit = edit_of(edits, c->layer, spec);
    apply(*c, edit);
    edits.insert_or_assign(c->layer, std::move(edit));
  }
  return edits;
}

int64_t saved_beside(const Edits& edits, const Candidate& candidate, const ModelSpec& spec) {
  BlockEdit edit = edit_of(edits, candidate.layer, spec);
  const int64_t before = factored_parameters(edit, spec);
  apply(candidate, edit);
  return before - factored_parameters(edit, spec);
}

std::vector<const Candidate*> next_candidates(const std::vector<Candidate>& open, Edits edits, size_t most,
                                              const ModelSpec& spec) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const auto price_of = [&](const Candidate& c) {
    const int64_t saves = saved_beside(edits, c, spec);
    return saves > 0 ? std::max(c.cost, kLeastCost) / static_cast<double>(saves) : kNever;
  };
  std::vector<double> price;
  for (const Candidate& c : open) price.push_back(price_of(c));
  std::vector<const Candidate*> out;
  while (out.size() < most) {
    const auto best = std::min_element(price.begin(), price.end());
    if (best == price.end() || *best == kNever) break;
    out.push_back(&open[static_cast<size_t>(best - price.begin())]);
    edits = with(std::move(edits), {out.back()}, spec);
    for (size_t i = 0; i < open.size(); ++i)  // what is saved in one layer does not depend on the others
      if (open[i].layer == out.back()->layer) price[i] = price_of(open[i]);
  }
  return out;
}

}  // namespace rankscope
