// Induction: the last word stood once before; the answer is the word that followed it there.
#include <utility>

#include "base/error.h"
#include "tasks/support/asked_last.h"

namespace rankscope {
namespace {

constexpr int64_t kInductionWords = 12;

Asked draw_induction(int64_t tokens, Counted& random) {
  std::vector<int64_t> ids(static_cast<size_t>(tokens));
  const int64_t asked = random.below(kInductionWords), place = random.below(tokens - 2);
  for (int64_t& id : ids) {  // any word but the one that is asked about
    id = random.below(kInductionWords - 1);
    id += id >= asked;
  }
  ids[static_cast<size_t>(place)] = ids.back() = asked;
  const int64_t answer = ids[static_cast<size_t>(place) + 1];
  return {std::move(ids), answer};
}

TokenRecipe induction_recipe(bool) {
  return {.layers = 2, .width = 32, .positions = true, .tokens = 16, .train = 4096, .epochs = 20, .lr = 3e-3};
}

TokenData make_induction(const TokenTaskSpec& spec) {
  if (spec.tokens < 3) throw usage_error("induction needs three tokens").hint("tokens=16");
  return {.train = asked_last(spec, spec.train, "induction train", draw_induction),
          .test = asked_last(spec, spec.test, "induction test", draw_induction),
          .vocabulary = kInductionWords,
          .classes = kInductionWords};
}

}  // namespace

extern const TokenTask token_task_induction{.name = "induction",
                                            .summary = "what followed the last word where it stood before",
                                            .recipe = induction_recipe,
                                            .make = make_induction};

}  // namespace rankscope
