#include "cli/parity.h"

#include <algorithm>
#include <cmath>

namespace rankscope {

bool passes(const LayerError& error, double tolerance) { return error.relative() <= tolerance; }

bool all_pass(const std::vector<LayerError>& errors, double tolerance) {
  return std::all_of(errors.begin(), errors.end(), [&](const LayerError& e) { return passes(e, tolerance); });
}

const LayerError& worst_of(const std::vector<LayerError>& errors) {
  const LayerError* worst = &errors.front();
  for (const LayerError& e : errors) {
    if (std::isnan(worst->relative())) break;  // nothing is further off, and the first one is the cause
    if (!(e.relative() <= worst->relative())) worst = &e;
  }
  return *worst;
}

Json parity_list(const std::vector<LayerError>& errors, double tolerance) {
  Json list = Json::array();
  for (const LayerError& e : errors)
    list.push_back({{"tensor", e.tensor},
                    {"largest", e.largest},
                    {"mean", e.mean},
                    {"magnitude", e.magnitude},
                    {"relative", e.relative()},
                    {"pass", passes(e, tolerance)}});
  return list;
}

Json parity_of(const std::vector<LayerError>& errors, double tolerance, const std::string& against) {
  const LayerError& worst = worst_of(errors);
  return {{"checked", true},
          {"against", against},
          {"agrees", all_pass(errors, tolerance)},
          {"worst", worst.relative()},
          {"at", worst.tensor},
          {"tolerance", tolerance},
          {"layers", parity_list(errors, tolerance)}};
}

Json parity_not_checked() {
  return {{"checked", false}, {"how", "rankscope scan MODEL --verify ACTIVATIONS.safetensors"}};
}

}  // namespace rankscope
