// What a plan may change: single heads that go, and the maps of single layers cut to a part of their rank.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "importance/evaluator.h"

namespace rankscope {

/// By layer; layers that stay as they are have none.
using Edits = std::map<int64_t, BlockEdit>;

struct Candidate {
  int64_t layer = 0;
  int64_t head = -1;         // the head that goes,
  std::string map = {};      // or the map that is cut: qk, ov or kv,
  int64_t rank = 0;          // to this rank
  double saves = 0;          // parameters
  double cost = 0;           // of the loss, alone
  std::string what() const;  // "head L5H3", "QK of layer 3 to rank 8"
  Variation alone(const ModelSpec& spec) const;
};

/// Those that a folder of the same architecture has a place for; what was left out is noted.
std::vector<Candidate> candidates_of(const Checkpoint& checkpoint, std::vector<std::string>& notes);

/// The edits with these candidates on top; a cut replaces a weaker one.
Edits with(Edits edits, const std::vector<const Candidate*>& more, const ModelSpec& spec);

/// Parameters that a map cut to `rank` no longer needs, kept as two factors.
double saved_by_rank(const ModelSpec& spec, const AttentionSpec& a, const std::string& map, int64_t rank);

}  // namespace rankscope
