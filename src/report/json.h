// Results as one JSON document, for programs: {"manifest", "notes", "verdict", "metrics"}.
#pragma once

#include "report/csv.h"
#include "report/results.h"

namespace rankscope {

/// The rows of metrics.csv carry the names of its columns, one row to a line; what is an empty cell there is
/// null here, and so is an infinite number, for which JSON has no word. Text that is not UTF-8 is replaced by
/// U+FFFD.
void write_json(const Results& results, const TextSink& sink);

/// Text as a JSON string; what is not UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);
/// The shortest number that reads back the same; NaN is null, infinity "inf" or "-inf" for those who know.
std::string json_number(double x);
/// Any document on one line, valid UTF-8.
std::string json_text(const Json& value);

/// The sentences of a verdict as a JSON list.
std::string verdict_text(const std::vector<Sentence>& verdict);

/// A manifest as text: indented, keys sorted, valid UTF-8.
std::string manifest_text(const Json& manifest);

}  // namespace rankscope
