// The engine, called as a library: a folder that is not there gives our error, not a crash.
#include <cstdio>

#include "base/error.h"
#include "scan/scan.h"

int main() {
  rankscope::ScanRequest request;
  request.model = "no/such/model";
  request.random_tokens = true;
  try {
    rankscope::scan(request, {});
  } catch (const rankscope::Error& error) {
    std::fputs(error.render().c_str(), stdout);
    return 0;
  }
  return 1;
}
