#include "tasks/support/asked_last.h"

#include <utility>

#include "base/stream_name.h"
#include "tasks/unasked.h"

namespace rankscope {

void Counted::shuffle(std::vector<int64_t>& values) {
  for (size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
}

TokenSet asked_last(const TokenTaskSpec& spec, int64_t sequences, std::string_view which,
                    const std::function<Asked(int64_t, Counted&)>& draw) {
  Counted random(spec.seed, stream_of(which));
  TokenSet out{.tokens = spec.tokens};
  for (int64_t s = 0; s < sequences; ++s) {
    const Asked one = draw(spec.tokens, random);
    out.ids.insert(out.ids.end(), one.ids.begin(), one.ids.end());
    out.labels.insert(out.labels.end(), one.ids.size() - 1, kUnasked);
    out.labels.push_back(one.answer);
  }
  return out;
}

}  // namespace rankscope
