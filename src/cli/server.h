// `rankscope serve` from the inside: HTTP on loopback, for whoever sits at this machine.
#pragma once

#include <functional>

#include "cli/folder_pages.h"

namespace rankscope {

/// Binds to 127.0.0.1, calls `ready` with the port (the one asked for, or any for 0), and serves until the
/// process ends.
void serve_pages(FolderPages& pages, int port, const std::function<void(int)>& ready);

}  // namespace rankscope
