// Built where cpp-httplib is missing.
#include "base/error.h"
#include "cli/server.h"

namespace rankscope {

void serve_pages(FolderPages&, int, const std::function<void(int)>&) {
  throw Error("this program was built without cpp-httplib and serves nothing")
      .hint("rankscope report writes the same page to a file; or install libcpp-httplib-dev and build again");
}

}  // namespace rankscope
