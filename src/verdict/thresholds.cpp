#include "base/error.h"
#include "verdict/rule.h"

namespace rankscope {
namespace {

const ThresholdInfo& known(std::string_view name) {
  for (const ThresholdInfo& t : threshold_infos())
    if (t.name == name) return t;
  std::vector<std::string> names;
  for (const ThresholdInfo& t : threshold_infos()) names.emplace_back(t.name);
  throw unknown_name("threshold", name, names, "rankscope scan --help");
}

}  // namespace

const std::vector<ThresholdInfo>& threshold_infos() {
  static const std::vector<ThresholdInfo> all = [] {
    std::vector<ThresholdInfo> out;
    for (const Rule* rule : rules_in_order())
      out.insert(out.end(), rule->thresholds.begin(), rule->thresholds.end());
    return out;
  }();
  return all;
}

double Thresholds::operator[](std::string_view name) const {
  const auto found = set_.find(name);
  return found != set_.end() ? found->second : known(name).value;
}

void Thresholds::set(std::string_view name, double value) { set_[std::string(known(name).name)] = value; }

}  // namespace rankscope
