// What a scan was: enough to run it again and to tell two results apart.
#pragma once

#include "checkpoint/checkpoint.h"
#include "pass/input.h"
#include "pass/request.h"

namespace rankscope {

/// Where the weights are stored.
std::vector<std::filesystem::path> weight_files(const Checkpoint& checkpoint);

/// `checkpoint` is null for a shape at random initialisation.
Json make_manifest(const ScanRequest& request, const Checkpoint* checkpoint, const ScanInput& input,
                   const ScanResult& result, const std::vector<std::string>& variants, double seconds);

}  // namespace rankscope
