// The whole program as a function of its arguments.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace rankscope {

/// 0 success, 1 a run failed or a check did not hold, 2 the request was wrong.
int run_program(std::vector<std::string> arguments, std::istream& in, std::ostream& out, std::ostream& err);

}  // namespace rankscope
