#include "importance/candidates.h"

#include <fmt/format.h>

#include <algorithm>

#include "importance/planned_model.h"
#include "importance/rank_curves.h"
#include "importance/savings.h"

namespace rankscope {
namespace {

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
      const int64_t rank = full_rank(block, map) / part;
      if (rank < 1) continue;
      const double saves = saved_by_rank(spec, block.attention(), map, rank);
      if (saves > 0) out.push_back({.layer = l, .map = map, .rank = rank, .saves = saves});
    }
  }
  if (left_out > 0)
    notes.push_back(
        fmt::format("the {} maps of {} layers were not tried: cut, they have no place in this architecture",
                    map, left_out));
}

}  // namespace

std::string Candidate::what() const {
  if (head >= 0) return fmt::format("head L{}H{}", layer, head);
  const char* name = map == "qk" ? "QK" : map == "ov" ? "OV" : "KV";
  return fmt::format("{} of layer {} to rank {}", name, layer, rank);
}

Variation Candidate::alone(const ModelSpec& spec) const {
  if (head >= 0) return {layer, Unit{UnitKind::head, layer, head}, Replacement::zero, {}};
  return {
      layer, {}, Replacement::zero, {{layer, cut_to(spec.blocks[static_cast<size_t>(layer)], map, rank)}}};
}

std::vector<Candidate> candidates_of(const Checkpoint& checkpoint, std::vector<std::string>& notes) {
  std::vector<Candidate> out;
  for (const Unit& u : units_of(checkpoint.spec(), UnitKind::head))
    if (can_write(checkpoint, u.layer, "kv"))
      out.push_back(
          {.layer = u.layer,
           .head = u.index,
           .saves = static_cast<double>(parameters_saved(checkpoint.spec(), {{u.layer, u.index}}))});
  for (const char* map : {"qk", "ov", "kv"}) add_ranks(checkpoint, map, out, notes);
  return out;
}

Edits with(Edits edits, const std::vector<const Candidate*>& more, const ModelSpec& spec) {
  for (const Candidate* c : more) {
    const BlockSpec& full = spec.blocks[static_cast<size_t>(c->layer)];
    BlockEdit& edit = edits.try_emplace(c->layer, BlockEdit{full, 0}).first->second;
    AttentionSpec& a = edit.spec.attention();
    const auto lower = [&](int64_t& rank) { rank = rank == 0 ? c->rank : std::min(rank, c->rank); };
    if (c->head >= 0) {
      a.heads_off.push_back(c->head);
      std::sort(a.heads_off.begin(), a.heads_off.end());
    } else if (c->map == "qk") {
      lower(a.truncate_qk);
    } else if (c->map == "ov") {
      lower(a.truncate_ov);
    } else {
      lower(edit.kv_rank);
    }
  }
  return edits;
}

double saved_by_rank(const ModelSpec& spec, const AttentionSpec& a, const std::string& map, int64_t rank) {
  const auto width = static_cast<double>(spec.width);
  if (map == "qk") return 2 * width * static_cast<double>((a.d_qk - rank) * a.heads);
  if (map == "ov") return 2 * width * static_cast<double>((a.d_v - rank) * a.heads);
  const auto both = static_cast<double>(a.d_qk + a.d_v), r = static_cast<double>(rank);
  return static_cast<double>(a.kv_heads) * (both * width - r * (width + both));
}

}  // namespace rankscope
