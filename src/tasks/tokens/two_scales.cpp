// Two scales: whether a mark stands within 8 tokens of this one, and which of two letters stands more often
// in the whole text. Both are asked at every token, as one of four answers.
#include <algorithm>

#include "base/error.h"
#include "base/stream_name.h"
#include "tasks/support/asked_last.h"

namespace rankscope {
namespace {

constexpr int64_t kMark = 2;
constexpr int64_t kNear = 8;
constexpr double kMarked = 0.04;  // of the tokens: half of all have a mark nearby
constexpr double kLead = 0.6;     // of the letters are the text's own, up to chance

std::vector<int64_t> draw_text(int64_t tokens, Counted& random, int64_t& leads) {
  for (;;) {
    std::vector<int64_t> ids;
    int64_t seconds = 0, letters = 0;
    const int64_t own = random.below(2);
    for (int64_t i = 0; i < tokens; ++i) {
      const bool marked = random.uniform() < kMarked;
      ids.push_back(marked ? kMark : random.uniform() < kLead ? own : 1 - own);
      letters += !marked;
      seconds += ids.back() == 1;
    }
    if (2 * seconds == letters) continue;  // one of them has to lead
    leads = 2 * seconds > letters;
    return ids;
  }
}

TokenSet draw_texts(const TokenTaskSpec& spec, int64_t sequences, std::string_view which) {
  Counted random(spec.seed, stream_of(which));
  TokenSet out{.tokens = spec.tokens};
  for (int64_t s = 0; s < sequences; ++s) {
    int64_t leads = 0;
    const std::vector<int64_t> ids = draw_text(spec.tokens, random, leads);
    for (int64_t i = 0; i < spec.tokens; ++i) {
      const auto from = ids.begin() + std::max<int64_t>(0, i - kNear),
                 to = ids.begin() + std::min(spec.tokens, i + kNear + 1);
      out.labels.push_back(2 * (std::find(from, to, kMark) != to) + leads);
    }
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  }
  return out;
}

TokenRecipe two_scales_recipe(bool) {
  return {.layers = 1, .heads = 4, .width = 32, .tokens = 64, .train = 2048, .epochs = 20, .lr = 3e-3};
}

TokenData make_two_scales(const TokenTaskSpec& spec) {
  if (spec.tokens < 2) throw usage_error("two scales need a text").hint("tokens=256");
  return {.train = draw_texts(spec, spec.train, "two_scales train"),
          .test = draw_texts(spec, spec.test, "two_scales test"),
          .vocabulary = 3,
          .classes = 4};
}

}  // namespace

extern const TokenTask token_task_two_scales{
    .name = "two_scales",
    .summary = "whether a mark is near, and which letter leads in the whole text",
    .recipe = two_scales_recipe,
    .make = make_two_scales};

}  // namespace rankscope
