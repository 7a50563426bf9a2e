// The sample a report shows head by head, out of the arrays of a scan.
#pragma once

#include <span>

#include "base/array.h"
#include "base/json.h"
#include "report/csv.h"

namespace rankscope {

/// Writes {"sample", "tokens", "length", "layers"} as web/src/data.ts reads it, or null where the arrays hold
/// no attention. `entry` is the manifest's entry about the sample: {"sample", "tokens"}.
void write_page_sample(std::span<const NamedArray> arrays, const Json& entry, const TextSink& sink);

/// Writes {"side", "in", "in_out"}, the token-to-token map of `rankscope operator`, or null where there is
/// none.
void write_token_map(std::span<const NamedArray> arrays, const TextSink& sink);

/// RFC 4648.
std::string base64(std::span<const unsigned char> bytes);

}  // namespace rankscope
