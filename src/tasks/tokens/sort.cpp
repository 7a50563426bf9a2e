// Sorting: the label of token i is the i-th smallest letter of the sequence.
#include <algorithm>

#include "base/philox.h"
#include "base/stream_name.h"
#include "tasks/token_task.h"

namespace rankscope {
namespace {

constexpr uint64_t kLetters = 10;

TokenSet draw_sort(const TokenTaskSpec& spec, int64_t sequences, std::string_view which) {
  const Philox random{spec.seed, stream_of(which), 0};
  TokenSet out{.tokens = spec.tokens};
  for (int64_t s = 0; s < sequences; ++s) {
    for (int64_t i = 0; i < spec.tokens; ++i)
      out.ids.push_back(
          static_cast<int64_t>(random.below(kLetters, static_cast<uint64_t>(s * spec.tokens + i))));
    std::vector<int64_t> sorted(out.ids.end() - spec.tokens, out.ids.end());
    std::sort(sorted.begin(), sorted.end());
    out.labels.insert(out.labels.end(), sorted.begin(), sorted.end());
  }
  return out;
}

TokenRecipe sort_recipe(bool reference) {
  return {.positions = true,
          .epochs = 65,
          .lr = reference ? 1e-5 : 1e-4};  // 1e-5 leaves the network half trained
}

TokenData make_sort(const TokenTaskSpec& spec) {
  return {.train = draw_sort(spec, spec.train, "sort train"),
          .test = draw_sort(spec, spec.test, "sort test"),
          .vocabulary = kLetters,
          .classes = kLetters};
}

}  // namespace

extern const TokenTask token_task_sort{.name = "sort",
                                       .summary = "the letters of a sequence in order",
                                       .recipe = sort_recipe,
                                       .make = make_sort};

}  // namespace rankscope
