// Memorisation: every token of a text has a label by the toss of a coin, and training is tested on what it
// has seen.
#include <algorithm>

#include "base/philox.h"
#include "base/stream_name.h"
#include "tasks/support/texts.h"
#include "tasks/token_task.h"

namespace rankscope {
namespace {

TokenSet tossed(const Texts& texts, const TokenTaskSpec& spec, int64_t count) {
  const Philox coin{spec.seed, stream_of("coin"), 0};
  TokenSet out{.tokens = spec.tokens};
  for (int64_t t = 0; t < count; ++t) {
    const std::vector<int64_t>& ids = texts.ids[static_cast<size_t>(t)];
    for (int64_t i = 0; i < spec.tokens; ++i) {
      const bool there = i < static_cast<int64_t>(ids.size());
      out.ids.push_back(there ? ids[static_cast<size_t>(i)] : 0);
      out.labels.push_back(
          there ? static_cast<int64_t>(coin.below(2, static_cast<uint64_t>(t * spec.tokens + i))) : kNoToken);
    }
  }
  return out;
}

TokenRecipe memorise_recipe(bool reference) {
  TokenRecipe r{.width = 250, .mlp = true, .tokens = 128, .train = 500, .test = 88, .epochs = 50, .batch = 8};
  r.lr = 3e-4;
  r.clip = 1;
  r.schedule = TokenRecipe::Schedule::linear;
  r.shuffle = true;
  if (reference) return r;
  // The MLP was on by a mistake; the rest is a size that trains to the end in a minute.
  r.mlp = false;
  r.width = 128;
  r.tokens = r.train = 64;
  r.test = 32;
  r.epochs = 60;
  r.lr = 1e-3;
  return r;
}

TokenData make_memorise(const TokenTaskSpec& spec) {
  const Texts texts = spec.text.empty() ? synthetic_texts(spec.train, spec.tokens, spec.seed)
                                        : read_texts(spec.text, spec.train, spec.tokens);
  return {.train = tossed(texts, spec, spec.train),
          .test = tossed(texts, spec, std::min(spec.test, spec.train)),
          .vocabulary = texts.vocabulary,
          .classes = 2};
}

}  // namespace

extern const TokenTask token_task_memorise{.name = "memorise",
                                           .summary = "coin tosses learnt by heart",
                                           .recipe = memorise_recipe,
                                           .make = make_memorise};

}  // namespace rankscope
