// Two functions composed, as in theory/composition.h: the prompt lists z_2, then z_1, z_0 and w, one word for
// each entry with its value, and at the last token z_2(w, z_1(z_0)) is asked for.
#include "theory/composition.h"

#include <fmt/format.h>

#include "base/error.h"
#include "tasks/token_task.h"
#include "tasks/unasked.h"

namespace rankscope {
namespace {

constexpr CompositionSize kSmallest{.functions = 2, .values = 2, .choices = 2};

CompositionSize size_for(int64_t tokens) {
  CompositionSize size = kSmallest;
  while (size.tokens() < tokens) ++size.values;
  if (size.tokens() != tokens)
    throw usage_error(
        fmt::format("tables of two functions have 3 v entries: {} tokens are not 3 v + 2", tokens))
        .hint("tokens=8, 11 or 14");
  return size;
}

// Words of z_2, z_1, z_0 and w, in this order.
int64_t word_of(const CompositionToken& t, const CompositionSize& size, int64_t told) {
  const int64_t second = size.entries(2), first = size.entries(1);
  if (t.level == 2) return t.key * second + t.value;
  if (t.level == 1) return second * second + t.key * first + t.value;
  const int64_t behind = second * second + first * first;
  return t.level == 0 ? behind + t.value : behind + first + told;
}

TokenSet draw_prompts(const TokenTaskSpec& spec, int64_t sequences, uint32_t begin) {
  const CompositionSize size = size_for(spec.tokens);
  TokenSet out{.tokens = spec.tokens};
  for (int64_t s = 0; s < sequences; ++s) {
    const Composition c = draw_composition(size, spec.seed, begin + static_cast<uint32_t>(s));
    for (const CompositionToken& t : prompt_of(c)) out.ids.push_back(word_of(t, size, c.told.front()));
    out.labels.insert(out.labels.end(), static_cast<size_t>(spec.tokens - 1), kUnasked);
    out.labels.push_back(c.answer());
  }
  return out;
}

TokenRecipe composition_recipe(bool) {
  return {.layers = 3, .width = 32, .tokens = 11, .train = 8192, .epochs = 20, .lr = 3e-3};
}

TokenData make_composition(const TokenTaskSpec& spec) {
  const CompositionSize size = size_for(spec.tokens);
  const int64_t second = size.entries(2), first = size.entries(1);
  constexpr uint32_t kTest = uint32_t{1} << 31;  // behind every instance that is trained on
  return {.train = draw_prompts(spec, spec.train, 0),
          .test = draw_prompts(spec, spec.test, kTest),
          .vocabulary = second * second + first * first + first + size.choices,
          .classes = second};
}

}  // namespace

extern const TokenTask token_task_composition{
    .name = "composition",
    .summary = "two functions composed, their tables listed in the wrong order",
    .recipe = composition_recipe,
    .make = make_composition};

}  // namespace rankscope
