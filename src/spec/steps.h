// A block as a short list of steps: four a branch. Everything that runs a block interprets this list, so what
// is true of the order of a block is true in one place.
//
//   read    the norm before: what the part reads
//   run     the part
//   write   the norm inside and the scale: what is added to the stream
//   join    the skip and the norm behind; one step, because fused kernels do both at once
//
// Equal prefixes of two lists compute equal things: variants of a network share them.
#pragma once

#include <string>
#include <vector>

#include "spec/model.h"

namespace rankscope {

struct Step {
  enum class Kind { read, run, write, join } kind;
  int branch = 0;  // which of the block
  /// read, write, join: the norm that stands there and the name of its parameters.
  NormSpec norm = {};
  std::string norm_name = {};
  bool from_start = false;     // read: what the block was given, not what the branches before made of it
  bool replaces = false;       // read: the skip takes what the norm made, not the stream
  PartSpec part = {};          // run
  std::string name = {};       // of the branch
  std::string reads = {};      // run: the stream that keys and values come from
  double scale = 1.0;          // write
  bool channel_scale = false;  // write: by the parameter <name>.layer_scale
  bool skip = true;            // join
  bool operator==(const Step&) const = default;
};

std::vector<Step> steps_of(const BlockSpec& block);

}  // namespace rankscope
