// For users of the library: result tables and errors. Needs no LibTorch (target rankscope::rankscope_base).
#pragma once

#include "base/error.h"
#include "base/table.h"
#include "base/version.h"
