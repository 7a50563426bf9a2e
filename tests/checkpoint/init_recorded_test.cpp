// Random twins start as transformers starts the same config: deviation, mean, shape and constants of every
// kind of tensor, held against what the library drew (tests/fixtures/init.json, made by fixture_inits.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "checkpoint/architecture.h"
#include "parts/check.h"
#include "parts/parameters.h"
#include "support/source_tree.h"

namespace rankscope {
namespace {

constexpr int64_t kMost = 4096;  // numbers of one tensor that are looked at

// Of numbers x: how many, their mean, deviation, and the mean of x^4 over the deviation's fourth power.
struct Moments {
  double n = 0, mean = 0, std = 0, kurtosis = 0;
  bool constant() const { return std == 0; }
};

Moments moments(const std::vector<float>& x) {
  Moments m;
  m.n = static_cast<double>(x.size());
  for (const double v : x) m.mean += v / m.n;
  double fourth = 0;
  for (const double v : x) {
    m.std += std::pow(v - m.mean, 2) / m.n;
    fourth += std::pow(v, 4) / m.n;
  }
  m.std = std::sqrt(m.std);
  if (m.std < 1e-7 * std::fabs(m.mean)) m.std = 0;  // of equal floats, the sum was rounded
  if (m.std > 0) m.kurtosis = fourth / std::pow(m.std, 4);
  return m;
}

// "h.3.attn.c_attn.weight" as "h.*.attn.c_attn.weight": the blocks of a network start alike.
std::string kind_of(const std::string& tensor) {
  static const std::regex number(R"(\.\d+(?=\.))");
  return std::regex_replace(tensor, number, ".*");
}

// The recorded kind of tensor under one of the source's names, whatever stands in front of it; the shortest.
std::string recorded_as(const Source& source, const Json& recorded) {
  std::string found;
  for (const std::string& tensor : {source.tensor, source.other}) {
    const std::string kind = kind_of(tensor);
    for (const auto& [name, told] : recorded.items())
      if (!tensor.empty() && (name == kind || name.ends_with("." + kind)) &&
          (found.empty() || name.size() < found.size()))
        found = name;
  }
  return found;
}

// What is drawn here for every kind of stored tensor, of each of our names: fused tensors have several.
std::map<std::pair<std::string, std::string>, std::vector<float>> drawn(const ModelSpec& spec,
                                                                        const Architecture& arch,
                                                                        const Json& recorded) {
  const WeightMap places = arch.weights(spec);
  std::map<std::pair<std::string, std::string>, std::vector<float>> out;
  std::set<std::string> seen;
  for (const Parameter& p : parameters(spec)) {
    const auto place = places.find(p.name);
    EXPECT_NE(place, places.end()) << p.name;
    if (place == places.end()) continue;
    const Source& source = place->second;
    // What several blocks share is stored, and drawn, once.
    if (!seen.insert(fmt::format("{} {} {}", source.tensor, source.first_row, source.matrix)).second)
      continue;
    std::string found = recorded_as(source, recorded);
    for (const Source& other : source.instead)
      if (found.empty()) found = recorded_as(other, recorded);
    EXPECT_FALSE(found.empty()) << spec.architecture << ": nothing recorded for " << p.name << ", "
                                << source.tensor;
    std::vector<float> x(static_cast<size_t>(std::min(kMost, element_count(p))));
    draw(p, spec, 3, 0, static_cast<int64_t>(x.size()), x.data());
    std::vector<float>& all = out[{found, kind_of("." + p.name + ".")}];
    for (const float v : x) all.push_back(v - static_cast<float>(source.plus));
  }
  return out;
}

TEST(Init, FollowsTransformersInEveryArchitecture) {
  const Json all = read_json(test::fixtures() / "init.json");
  size_t compared = 0;
  for (const auto& [model, entry] : all.at("models").items()) {
    const ModelSpec spec = spec_from_config(entry.at("config").dump(), model);
    check(spec, model);
    const JsonObject config(entry.at("config"), model);
    for (const auto& [names, x] : drawn(spec, architecture_for(config), entry.at("tensors"))) {
      if (names.first.empty()) continue;
      const Json& told = entry.at("tensors").at(names.first);
      const Moments theirs{told.at(0), told.at(1), told.at(2), told.at(3)}, ours = moments(x);
      const std::string where = model + ": " + names.second + " is " + names.first;
      ++compared;
      if (theirs.constant()) {
        EXPECT_TRUE(ours.constant()) << where << ", deviation " << ours.std << ", theirs is the constant "
                                     << theirs.mean;
        EXPECT_NEAR(ours.mean, theirs.mean, 1e-6 * std::fabs(theirs.mean)) << where;  // float32
        continue;
      }
      // Errors of n normal numbers: of the deviation 1 / sqrt(2 n) of it, of the mean 1 / sqrt(n), of the
      // kurtosis sqrt(24 / n); five of those, on both sides.
      const double error = 5 * std::hypot(1 / std::sqrt(ours.n), 1 / std::sqrt(theirs.n));
      EXPECT_NEAR(ours.std / theirs.std, 1, error / std::sqrt(2.0)) << where << ", theirs " << theirs.std;
      EXPECT_NEAR(ours.mean, theirs.mean, error * theirs.std) << where;
      EXPECT_NEAR(ours.kurtosis, theirs.kurtosis, error * std::sqrt(24.0)) << where;
    }
  }
  EXPECT_GT(compared, 400u);
}

}  // namespace
}  // namespace rankscope
