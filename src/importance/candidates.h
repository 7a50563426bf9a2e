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
  double cost = 0;           // of the loss, alone
  std::string what() const;  // "head L5H3", "QK of layer 3 to rank 8"
  Variation alone(const ModelSpec& spec) const;
};

/// Those that a folder of the same architecture has a place for; what was left out is noted.
std::vector<Candidate> candidates_of(const Checkpoint& checkpoint, std::vector<std::string>& notes);

/// The edits with these candidates on top. A cut replaces a weaker one and falls away beside a stronger one;
/// products of keys and values have no higher rank than their latent; of a layer without heads nothing is
/// left to cut.
Edits with(Edits edits, const std::vector<const Candidate*>& more, const ModelSpec& spec);

/// Parameters that the network needs fewer with this candidate than with the edits alone, in factored form;
/// 0 where it changes nothing of them.
int64_t saved_beside(const Edits& edits, const Candidate& candidate, const ModelSpec& spec);

/// What to take next, `most` of them or fewer: always the one with the least cost for what it saves beside
/// the edits and those before it. Candidates that save nothing more are never among them.
std::vector<const Candidate*> next_candidates(const std::vector<Candidate>& open, Edits edits, size_t most,
                                              const ModelSpec& spec);

}  // namespace rankscope
