// Names that are printed, and names as they are in the tables: what one command prints another must take.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

/// A heading of the table of layers that `scan` prints.
struct ShortName {
  /// Where tokens are read, the residual stream, the attention matrices, as it comes.
  enum class Where { judged, stream, attention, anywhere };
  std::string_view name;                  // "eff.rank"
  std::vector<std::string_view> metrics;  // of metrics.csv; the first that was measured
  Where where;
  std::string_view threshold = {};  // of the verdict: the heading is the share of heads that reach it
};

const std::vector<ShortName>& short_names();

/// What a heading stands for, or nothing where it is none.
const ShortName* short_name(std::string_view name);

/// Whether tables print it: a heading, or a metric that people have a name for.
bool is_name(std::string_view name);

/// "effective_rank_rel" as "Effective rank (share)", for a figure that people read.
std::string readable_metric(std::string_view metric);

/// "output_kl" as "Change of the predictions (KL), nats": a metric as the label of an axis.
std::string axis_label(std::string_view metric);

/// What the depth of a metric counts: "depth (blocks passed)", of a pruning curve "heads out".
std::string depth_label(std::string_view metric);

/// "-skip+mlp" as "without skips and MLP", "null:init" as "random initialisation".
std::string readable_variant(std::string_view variant);

/// report/names.json, the names themselves: the page of a report has them from the same file.
std::string_view names_json();

}  // namespace rankscope
