// The small language of tasks/support/backcopy.h: what comes next, at every token.
#include "tasks/support/backcopy.h"

#include <array>
#include <cmath>

#include "base/stream_name.h"
#include "tasks/support/asked_last.h"

namespace rankscope {
namespace {

constexpr size_t kWords = kBackcopyWords;
constexpr uint64_t kLanguage = 1;   // seed of its law
constexpr double kSharpness = 1.5;  // of its probabilities: softmax of normal numbers of this deviation
using Law = std::array<std::array<double, kWords>, kWords>;

// Texts never come back to the start.
const Law& law() {
  static const Law all = [] {
    const Philox random{kLanguage, stream_of("backcopy law"), 0};
    Law p{};
    for (size_t a = 0; a < kWords; ++a) {
      double sum = 0;
      for (size_t b = 1; b < kWords; ++b)
        sum += p[a][b] = std::exp(kSharpness * random.normal(a * kWords + b));
      for (size_t b = 1; b < kWords; ++b) p[a][b] /= sum;
    }
    return p;
  }();
  return all;
}

int64_t next_word(int64_t word, Counted& random) {
  double left = random.uniform();
  for (int64_t b = 1; b + 1 < kBackcopyWords; ++b)
    if ((left -= backcopy_probability(word, b)) < 0) return b;
  return kBackcopyWords - 1;
}

TokenSet draw_backcopy(const TokenTaskSpec& spec, int64_t sequences, std::string_view which) {
  Counted random(spec.seed, stream_of(which));
  TokenSet out{.tokens = spec.tokens};
  for (int64_t s = 0; s < sequences; ++s) {
    std::vector<int64_t> text{kBackcopyStart};
    while (static_cast<int64_t>(text.size()) <= spec.tokens) {
      const int64_t word = text.back();
      // A copy of a trigger would make a copy of a copy: two in a row say nothing new, so the law goes on.
      const bool copies = is_trigger(word) && text.size() > 1 && !is_trigger(text[text.size() - 2]) &&
                          text[text.size() - 2] != kBackcopyStart;
      text.push_back(copies ? text[text.size() - 2] : next_word(word, random));
    }
    out.ids.insert(out.ids.end(), text.begin(), text.end() - 1);
    out.labels.insert(out.labels.end(), text.begin() + 1, text.end());
  }
  return out;
}

TokenRecipe backcopy_recipe(bool) {
  return {.layers = 1,
          .heads = 1,
          .width = 48,
          .positions = true,
          .tokens = 48,
          .train = 4096,
          .epochs = 10,
          .batch = 16,
          .lr = 5e-3};
}

TokenData make_backcopy(const TokenTaskSpec& spec) {
  return {.train = draw_backcopy(spec, spec.train, "backcopy train"),
          .test = draw_backcopy(spec, spec.test, "backcopy test"),
          .vocabulary = kBackcopyWords,
          .classes = kBackcopyWords};
}

}  // namespace

double backcopy_probability(int64_t word, int64_t next) {
  return law()[static_cast<size_t>(word)][static_cast<size_t>(next)];
}

double backcopy_floor(const TokenSet& set) {
  double sum = 0;
  int64_t count = 0;
  for (size_t at = 0; at < set.ids.size(); ++at) {
    if (set.labels[at] < 0) continue;
    ++count;
    const bool first = at % static_cast<size_t>(set.tokens) == 0;
    const int64_t before = first ? kBackcopyStart : set.ids[at - 1];
    if (is_trigger(set.ids[at]) && !first && !is_trigger(before) && before != kBackcopyStart) continue;
    sum -= std::log(backcopy_probability(set.ids[at], set.labels[at]));
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

extern const TokenTask token_task_backcopy{
    .name = "backcopy",
    .summary = "a small language: what comes next, which behind a trigger is the word before it",
    .recipe = backcopy_recipe,
    .make = make_backcopy};

}  // namespace rankscope
