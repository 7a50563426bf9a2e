// Samples from texts: which lines are samples, which belong together, and where they are cut.
#pragma once

#include <string>
#include <vector>

#include "pass/input.h"
#include "text/tokenizer.h"

namespace rankscope {

/// Reads request.texts into `input`, samples of at most `limit` tokens, with notes on what was joined, cut
/// and left out. Lines of plain text are samples where they are long enough to say something; otherwise they
/// are prose, and are joined into windows. Single short samples are left out. request.lines takes everything
/// as it stands. `answers`, where given, takes the whole text_pair of each (else its text again), which is
/// then no part of the sample itself: what a decoder reads.
void read_texts(const ScanRequest& request, int64_t limit, ScanInput& input,
                std::vector<Sample>* answers = nullptr);

/// A sample, token by token; without a vocabulary the ids have to do.
std::vector<std::string> spelled(const Sample& sample, const Tokenizer* tokenizer);

}  // namespace rankscope
