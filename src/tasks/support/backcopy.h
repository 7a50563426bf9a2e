// Bigram-Backcopy (Guo et al. 2024), a small language: a word is drawn by the word before it, but behind one
// of three triggers stands the word that stood before the trigger, again. Texts begin with a word of their
// own.
#pragma once

#include "tasks/token_task.h"

namespace rankscope {

constexpr int64_t kBackcopyStart = 0, kBackcopyTriggers = 3;  // words 1, 2, 3 are the triggers
constexpr int64_t kBackcopyWords = 32;

/// Whether the word after `word` is a copy of the one before it.
constexpr bool is_trigger(int64_t word) { return word >= 1 && word <= kBackcopyTriggers; }

/// The law of the word after `word` where that is no trigger: one and the same for every seed.
double backcopy_probability(int64_t word, int64_t next);

/// The mean cross entropy of the set's labels, in nats, for who knows the law and the copies: what a network
/// can hope for on these very labels.
double backcopy_floor(const TokenSet& set);

}  // namespace rankscope
