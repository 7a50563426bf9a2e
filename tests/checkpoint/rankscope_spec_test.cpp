// Exported networks carry their spec: what a scan cannot follow is refused where the file is read.
#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/architecture.h"
#include "spec/json.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

std::string answer(const ModelSpec& spec) {
  const Json config{{"model_type", "rankscope"}, {"spec", to_json(spec)}};
  try {
    return describe(spec_from_config(config.dump(), "config.json")).substr(0, 4);
  } catch (const Error& e) {
    return e.message();
  }
}

TEST(RankscopeSpec, IsReadAsItWasWritten) {
  const ModelSpec spec = test::tiny_spec();
  const Json config{{"model_type", "rankscope"}, {"spec", to_json(spec)}};
  EXPECT_EQ(spec_from_config(config.dump(), "config.json"), spec);
}

TEST(RankscopeSpec, RefusesWhatAScanCannotFollow) {
  ModelSpec points = test::tiny_spec();
  points.embedding = {.points = 24, .width = 24};
  EXPECT_NE(answer(points).find("reads points"), std::string::npos) << answer(points);

  ModelSpec streams = test::tiny_spec();
  streams.sources.push_back(streams);
  streams.sources[0].name = "encoder";
  EXPECT_NE(answer(streams).find("the stream \"encoder\" too"), std::string::npos) << answer(streams);

  ModelSpec silent = test::tiny_spec();
  silent.blocks[1].branches.erase(silent.blocks[1].branches.begin());
  EXPECT_NE(answer(silent).find("block 1 has no attention"), std::string::npos) << answer(silent);

  ModelSpec relative = test::tiny_spec();
  relative.blocks[0].attention().variant = "relative";
  EXPECT_NE(answer(relative).find("goes with the part relative_attention"), std::string::npos)
      << answer(relative);
}

}  // namespace
}  // namespace rankscope
