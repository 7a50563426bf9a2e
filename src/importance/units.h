// The parts of a network that can be taken out one at a time, and what stands in their place. Knows nothing
// of torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/model.h"

namespace rankscope {

enum class UnitKind { head, mlp, layer, expert };
std::string_view to_string(UnitKind kind);  // "head", "mlp", ...

/// zero: nothing. mean: its mean over the tokens of all samples. resample: what it makes of another token.
enum class Replacement { zero, mean, resample };
std::string_view to_string(Replacement replacement);

struct Unit {
  UnitKind kind = UnitKind::head;
  int64_t layer = 0;
  int64_t index = -1;         // of the head or expert
  std::string label() const;  // "L5H3", "MLP 5", "layer 5", "L3E5"
  bool operator==(const Unit&) const = default;
};

/// All of one kind, layer by layer. A layer without the part has none; so has an MLP without a skip around
/// it, whose absence would leave nothing.
std::vector<Unit> units_of(const ModelSpec& spec, UnitKind kind);

/// What --ablate names: "heads,mlps", "all". `estimates` without heads: exact numbers of a few heads only.
struct AblationKinds {
  std::vector<UnitKind> exact;  // heads stand first
  bool estimates = false;
  bool all = false;  // whatever kinds there are
  bool heads() const { return !exact.empty() && exact.front() == UnitKind::head; }
};
AblationKinds parse_kinds(const std::string& text);
/// "zero,mean".
std::vector<Replacement> parse_replacements(const std::string& text);

}  // namespace rankscope
