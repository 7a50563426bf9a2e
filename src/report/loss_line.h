// The loss of every variant in one line: it shows that a checkpoint was read right and gives a KL its size.
#pragma once

#include <string>

#include "base/table.h"

namespace rankscope {

/// "full 3.21 ± 0.05 nats a token (perplexity 24.8), -skip 9.1 ± 0.1; next token, 32 samples"; empty where
/// the table has no loss.
std::string loss_line(const ResultTable& table);

}  // namespace rankscope
