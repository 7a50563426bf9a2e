// Keys that vary together (`on = [{task = "lookup", steps = 300}, ...]`), and what a command line says of
// them.
#pragma once

#include <string>
#include <vector>

#include "studies/overrides.h"

namespace rankscope {

/// The entries of such an axis that a command line asks for.
struct Entries {
  Axis axis;
  std::vector<std::vector<Scalar>> own;  // for each point the entry it was made of, as the study has it
  std::vector<std::string> notes;        // what was asked for and is no entry of the study
};

/// `given` has a key of the axis each. Whatever their order, every point has a given value of every given
/// key:
///
/// - Entries that have them all run.
/// - A given value that is in none of those is not lost. The entries nearest to it, found key by key as the
///   study writes its keys, each narrowing them to those with its value where there are any, run with the
///   given values in place of theirs. Their other keys stay.
Entries asked_for(const Axis& coupled, const std::vector<Axis>& given, const std::string& study);

}  // namespace rankscope
