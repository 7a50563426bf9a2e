// Result tables as CSV (RFC 4180): what pandas and R read without being told anything.
#pragma once

#include <functional>
#include <string_view>

#include "base/table.h"

namespace rankscope {

/// Takes text in pieces: a FileWriter, a stream, a string.
using TextSink = std::function<void(std::string_view)>;

/// variant,site,layer,head,metric,value,stderr,n,depth,tokens,stream. Numbers are the shortest that read back
/// the same; a NaN, and a layer, head or depth that does not apply, is an empty cell.
void write_metrics_csv(const ResultTable& table, const TextSink& sink);

/// variant,site,layer,head,metric,tokens,sample,value,stream
void write_samples_csv(const ResultTable& table, const TextSink& sink);

}  // namespace rankscope
