// Descriptions from outside that do not fit together are refused, each for its own reason.
#include "parts/check.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "spec/json.h"
#include "support/tiny.h"

namespace rankscope {
namespace {

std::string refusal(const std::function<void(ModelSpec&)>& change) {
  ModelSpec s = test::tiny_spec();
  change(s);
  try {
    check(s, "config.json");
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(CheckOfASpec, LetsWhatFitsTogetherPass) {
  EXPECT_EQ(refusal([](ModelSpec&) {}), "");
}

TEST(CheckOfASpec, NamesWhatDoesNotFit) {
  const auto expect = [](const std::string& part, const std::function<void(ModelSpec&)>& change) {
    EXPECT_NE(refusal(change).find(part), std::string::npos) << part << "; but: " << refusal(change);
  };
  expect("no blocks", [](ModelSpec& s) { s.blocks.clear(), s.stored_blocks = 0; });
  expect("stores 9 blocks", [](ModelSpec& s) { s.stored_blocks = 9; });
  expect("weights 7 of 3", [](ModelSpec& s) { s.blocks[1].weights = 7; });
  expect("no branch", [](ModelSpec& s) { s.blocks[1].branches.clear(); });
  expect("share a name", [](ModelSpec& s) { s.blocks[1].branches[1].name = "attn"; });
  expect("share the norm ln1", [](ModelSpec& s) { s.blocks[1].branches[1].norm_name = "ln1"; });
  expect("slopes for 4 heads", [](ModelSpec& s) { s.blocks[1].attention().alibi = {0.5}; });
  expect("as many frequencies", [](ModelSpec& s) {
    s.blocks[1].attention().rotary_frequencies = {1.0, 0.1};
    s.blocks[1].attention().rotary_long = {1.0};
    s.blocks[1].attention().rotary_context = 8;
  });
  expect("one of the two", [](ModelSpec& s) { s.blocks[1].attention().rotary_context = 8; });
  expect("a norm made that is not there", [](ModelSpec& s) { s.blocks[1].branches[0].skip_normed = true; });
  expect("share their gains", [](ModelSpec& s) { s.blocks[1].branches[0].before = {NormKind::layer}; });
  expect("do not divide", [](ModelSpec& s) { s.blocks[1].attention().kv_heads = 3; });
  expect("modules", [](ModelSpec& s) { s.blocks[1].attention().modules = 3; });
  expect("cannot be cut", [](ModelSpec& s) { s.blocks[1].attention().truncate_qk = 7; });
  expect("rotated pairs", [](ModelSpec& s) { s.blocks[1].attention().rotary_frequencies.resize(4); });
  expect("no head 4", [](ModelSpec& s) { s.blocks[1].attention().heads_off = {4}; });
  expect("writes width 5", [](ModelSpec& s) { s.blocks[1].attention().output_width = 5; });
  expect("there is no part", [](ModelSpec& s) { s.blocks[1].branches[0].part.name = "atention"; });
  expect("option of the part mlp", [](ModelSpec& s) { s.blocks[1].branches[1].part.options["gate"] = 1; });
  expect("relative attention",
         [](ModelSpec& s) { s.blocks[1].branches[0].part.name = "relative_attention"; });
  expect("the words that the part mlp needs",
         [](ModelSpec& s) { s.blocks[1].branches[0].part.name = "mlp"; });
  expect("which it has not", [](ModelSpec& s) { s.blocks[1].branches[0].reads = "encoder"; });
  expect("cannot be called \"embed\"", [](ModelSpec& s) {
    s.sources.push_back(s);
    s.sources[0].name = "embed";
  });
  expect("neither words nor points", [](ModelSpec& s) { s.embedding.vocabulary = 0; });
  expect("width 12", [](ModelSpec& s) { s.embedding.width = 12; });
  expect("another width", [](ModelSpec& s) { s.output.width = 7; });
}

TEST(SpecJson, IsCanonicalAndReadsBack) {
  ModelSpec s = test::tiny_spec(NormPlace::pre);
  s.blocks[1].attention().rotary_frequencies = {1.0, 0.1};
  s.blocks[2].branches[1].part = {"experts", MlpSpec{.width = 10}, {{"experts", 8.0}}};
  s.blocks[2].parallel = true;
  const Json json = to_json(s);
  EXPECT_EQ(spec_from_json(json, "here"), s);
  EXPECT_EQ(to_json(spec_from_json(json, "here")).dump(), json.dump());
  EXPECT_FALSE(json["blocks"][0]["branches"][0].contains("scale"));  // what has its default is left out
}

TEST(SpecJson, RefusesAWordItDoesNotKnowWithTheNearest) {
  Json json = to_json(test::tiny_spec());
  json["blocks"][0]["branches"][0]["skpi"] = false;
  try {
    spec_from_json(json, "config.json");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "there is no word \"skpi\"");
    EXPECT_EQ(e.advice().rfind("skip", 0), 0u) << e.advice();
  }
  json = to_json(test::tiny_spec());
  json["width"] = -1;
  EXPECT_THROW(spec_from_json(json, "config.json"), Error);
  json["width"] = "wide";
  EXPECT_THROW(spec_from_json(json, "config.json"), Error);
}

}  // namespace
}  // namespace rankscope
