// The short names of metrics: the columns of tables that have little room, on the terminal and elsewhere.
#pragma once

#include <array>
#include <string_view>

namespace rankscope {

struct ShortName {
  std::string_view name, metric;
  bool of_tokens;  // of the content tokens, read where attention reads them
};

inline constexpr std::array<ShortName, 6> kShortNames{{{"residual", "residual_fro_rel_trimmed", true},
                                                       {"eff.rank", "effective_rank_rel", true},
                                                       {"cosine", "token_cosine", true},
                                                       {"entropy", "attention_entropy", false},
                                                       {"sinks", "sink_ratio", false},
                                                       {"massive", "massive_ratio", false}}};

}  // namespace rankscope
