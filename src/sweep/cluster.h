// A sweep over several processes: one keeps the store and hands out stacks as the others ask; they need
// nothing but the folder. A worker that dies costs its stack only, which is handed out again when its lease
// ends.
#pragma once

#include "sweep/schedule.h"
#include "sweep/transport.h"

namespace rankscope {

/// The process with rank 0. Returns when nothing is left to do, or after `stop`, when the workers have given
/// back what they had. Throws when no worker is left while trials are.
SweepReport coordinate(Store& store, const Runner& runner, const SweepOptions& options, Transport& transport,
                       const std::function<void(const SweepProgress&)>& progress);

/// Every other process, until it is told that there is no more.
void work(const std::vector<const Runner*>& runners, const SweepOptions& options, Transport& transport);

/// Sends the workers home: for a coordinator that leaves with an error.
void dismiss(Transport& transport);

}  // namespace rankscope
