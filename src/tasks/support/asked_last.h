// What tasks share that ask at the last token of a sequence only: such a question has one answer with a
// causal mask and without.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/philox.h"
#include "tasks/token_task.h"

namespace rankscope {

/// Random whole numbers, one after another.
class Counted {
 public:
  Counted(uint64_t seed, uint32_t stream) : random_{seed, stream, 0} {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(n), next_++)); }
  double uniform() { return random_.uniform(next_++); }
  void shuffle(std::vector<int64_t>& values);

 private:
  Philox random_;
  uint64_t next_ = 0;
};

struct Asked {
  std::vector<int64_t> ids;  // of a whole sequence
  int64_t answer;
};

/// `sequences` times what `draw` makes; `which` names the stream of random numbers.
TokenSet asked_last(const TokenTaskSpec& spec, int64_t sequences, std::string_view which,
                    const std::function<Asked(int64_t tokens, Counted& random)>& draw);

}  // namespace rankscope
