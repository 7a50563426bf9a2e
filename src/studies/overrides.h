// The little language of the command line: `lr=0.003,0.01 rank=1,8,64 layers=1..5 d=8..128*2`. Parsed here
// and nowhere else, printed back in one canonical form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "studies/config.h"

namespace rankscope {

/// Keys that vary together and the values they take: one key for `rank = [1, 8]`, several for
/// `points = [{rank = 1, heads = 16}, ...]`.
struct Axis {
  std::vector<std::string> names;
  std::vector<std::vector<Scalar>> points;  // a value for each name
};

/// A slip of the finger must not fill the memory. `seeds = 3` is the range 0..2 and has the same limit.
inline constexpr int64_t kMostOfARange = 10'000;

/// One `key=values`. Values are separated by commas; `a..b` counts up by one, `a..b+s` by s, `a..b*f`
/// multiplies. Types and ranges are those of the key.
Axis parse_override(std::string_view text, const std::vector<Key>& keys);

/// The one value that a cell or a word means for this key.
Scalar parse_value(std::string_view text, const Key& key, const std::string& place);

/// "rank=1,8,64"; a coupled axis as "{rank,heads}={1,16},{8,2}".
std::string to_text(const Axis& axis);

}  // namespace rankscope
