// `rankscope scan`, whole.
#pragma once

#include "pass/request.h"

namespace rankscope {

ScanResult scan(const ScanRequest& request, const ProgressCallback& progress);

}  // namespace rankscope
