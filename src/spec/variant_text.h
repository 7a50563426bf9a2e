// An attention variant with its options as one word, as specs, studies and the command line write it:
// "softmax", "fastmax:p=2,norm=own_mean", "sinkhorn:rounds=5".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

struct VariantText {
  std::string name;
  std::map<std::string, std::string> options = {};
};

/// Refuses what is not "name" or "name:option=value,...". Whether there is such a variant or option is not
/// asked.
VariantText read_variant(std::string_view text);

/// The files of attention/, alphabetically (generated from their names), for those who do not know torch.
const std::vector<std::string>& attention_names();

}  // namespace rankscope
