// Results as one JSON document, for programs: {"manifest", "notes", "verdict", "metrics"}.
#pragma once

#include "report/csv.h"
#include "report/results.h"

namespace rankscope {

/// The rows of metrics.csv carry the names of its columns, one row to a line; what is an empty cell there is
/// null here, and so is an infinite number, for which JSON has no word. Text that is not UTF-8 is replaced by
/// U+FFFD.
void write_json(const Results& results, const TextSink& sink);

/// A manifest as text: indented, keys sorted, valid UTF-8.
std::string manifest_text(const Json& manifest);

}  // namespace rankscope
