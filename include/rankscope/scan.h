// For users of the library: what the commands scan, verify, collapse, paths and operator do, as functions.
#pragma once

#include <rankscope/tables.h>

#include "collapse/collapse.h"
#include "paths/operator.h"
#include "paths/paths.h"
#include "scan/scan.h"
#include "scan/verify.h"
