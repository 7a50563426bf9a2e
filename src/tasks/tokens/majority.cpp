// Majority: the letter that stands most often before the last token, which asks. One letter always leads.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "tasks/support/asked_last.h"

namespace rankscope {
namespace {

constexpr int64_t kMajorityLetters = 4;

Asked draw_majority(int64_t tokens, Counted& random) {
  Asked out{{}, 0};
  std::array<int64_t, kMajorityLetters> counts{};
  const auto leads = [&] { return std::max_element(counts.begin(), counts.end()); };
  do {
    out.ids.clear();
    counts = {};
    for (int64_t i = 0; i + 1 < tokens; ++i) {
      out.ids.push_back(random.below(kMajorityLetters));
      ++counts[static_cast<size_t>(out.ids.back())];
    }
  } while (std::count(counts.begin(), counts.end(), *leads()) > 1);
  out.answer = leads() - counts.begin();
  out.ids.push_back(kMajorityLetters);
  return out;
}

TokenRecipe majority_recipe(bool) {
  return {.layers = 2, .width = 32, .tokens = 16, .train = 4096, .epochs = 20, .lr = 3e-3};
}

TokenData make_majority(const TokenTaskSpec& spec) {
  if (spec.tokens < 2) throw usage_error("a majority needs a letter and a question").hint("tokens=16");
  return {.train = asked_last(spec, spec.train, "majority train", draw_majority),
          .test = asked_last(spec, spec.test, "majority test", draw_majority),
          .vocabulary = kMajorityLetters + 1,
          .classes = kMajorityLetters};
}

}  // namespace

extern const TokenTask token_task_majority{.name = "majority",
                                           .summary = "the letter that stands most often",
                                           .recipe = majority_recipe,
                                           .make = make_majority};

}  // namespace rankscope
