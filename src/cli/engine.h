// Loads librankscope.so, and with it torch, for the commands that need it: a program linked to LibTorch takes
// most of a second before main.
#pragma once

#include "engine/engine.h"

namespace rankscope {

/// The library beside the program, in ../lib beside it, or where RANKSCOPE_LIBRARY says. Loaded once.
const Engine& engine();

}  // namespace rankscope
