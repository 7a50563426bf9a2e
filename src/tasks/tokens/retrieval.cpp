// Retrieval: every token but the last is a key with its value; the last asks for one of the keys.
#include <numeric>

#include "base/error.h"
#include "tasks/support/asked_last.h"

namespace rankscope {
namespace {

constexpr int64_t kValues = 4;

// Word kValues * key + value stands for a pair, kValues * keys + key asks.
Asked draw_retrieval(int64_t tokens, Counted& random) {
  const int64_t keys = tokens - 1, asked = random.below(keys);
  std::vector<int64_t> order(static_cast<size_t>(keys));
  std::iota(order.begin(), order.end(), int64_t{0});
  random.shuffle(order);
  Asked out{{}, 0};
  for (const int64_t key : order) {
    const int64_t value = random.below(kValues);
    out.ids.push_back(kValues * key + value);
    if (key == asked) out.answer = value;
  }
  out.ids.push_back(kValues * keys + asked);
  return out;
}

TokenRecipe retrieval_recipe(bool) {
  return {.layers = 2, .width = 32, .tokens = 16, .train = 4096, .epochs = 20, .lr = 3e-3};
}

TokenData make_retrieval(const TokenTaskSpec& spec) {
  if (spec.tokens < 2) throw usage_error("retrieval needs a pair and a question").hint("tokens=16");
  return {.train = asked_last(spec, spec.train, "retrieval train", draw_retrieval),
          .test = asked_last(spec, spec.test, "retrieval test", draw_retrieval),
          .vocabulary = (kValues + 1) * (spec.tokens - 1),
          .classes = kValues};
}

}  // namespace

extern const TokenTask token_task_retrieval{
    .name = "retrieval",
    .summary = "the value that stood beside the key that is asked for",
    .recipe = retrieval_recipe,
    .make = make_retrieval};

}  // namespace rankscope
