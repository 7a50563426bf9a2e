// The one precompiled header: what nearly every torch file needs, and no more (a larger one gives nothing
// back).
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>
