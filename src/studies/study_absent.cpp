// Stands in for the reader of studies in builds without toml++.
#include "base/error.h"
#include "studies/study.h"

namespace rankscope {
namespace {
Error absent() {
  return Error("this build reads no studies, because toml++ was not found when it was made")
      .hint("apt install libtomlplusplus-dev libsqlite3-dev, then make build");
}
}  // namespace

Study parse_study(std::string_view, const std::string&, const std::string& place) {
  throw absent().in(place);
}
Study load_study(const std::string&) { throw absent(); }
std::vector<std::string> builtin_studies() { throw absent(); }

}  // namespace rankscope
