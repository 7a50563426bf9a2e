#include "report/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tables.h"

namespace rankscope {
namespace {

std::string text(const Results& results) {
  std::string out;
  write_json(results, [&](std::string_view piece) { out += piece; });
  return out;
}

TEST(JsonReport, NothingMeasuredIsStillADocument) {
  const ResultTable table;
  const Json manifest = {{"version", "0.1.0"}};
  const Json doc = Json::parse(text({table, {}, {}, manifest}));
  EXPECT_EQ(doc, (Json{{"manifest", {{"version", "0.1.0"}}},
                       {"notes", Json::array()},
                       {"verdict", Json::array()},
                       {"metrics", Json::array()}}));
}

TEST(JsonReport, RowsCarryTheColumnsOfTheCsvInItsOrder) {
  ResultTable table;
  table.rows.push_back(
      {"full", "blocks.0.hook_resid_post", 0, -1, "residual_fro_rel", 0.5, kNone, 1, 1, "content"});
  const Json manifest;
  const std::string out = text({table, {}, {}, manifest});
  EXPECT_NE(
      out.find(
          R"({"variant":"full","site":"blocks.0.hook_resid_post","layer":0,"head":null,)"
          R"("metric":"residual_fro_rel","value":0.5,"stderr":null,"n":1,"depth":1,"tokens":"content","stream":""})"),
      std::string::npos)
      << out;
}

TEST(JsonReport, NumbersThatJsonDoesNotKnowAreNull) {
  ResultTable table;
  table.rows.push_back(plain_row("a", INFINITY));
  table.rows.push_back(plain_row("b", kNone));
  const Json manifest;
  const Json doc = Json::parse(text({table, {}, {}, manifest}));
  EXPECT_TRUE(doc["metrics"][0]["value"].is_null());
  EXPECT_TRUE(doc["metrics"][1]["value"].is_null());
}

TEST(JsonReport, TheVerdictKeepsItsNumbers) {
  const ResultTable table;
  const Json manifest;
  const Json doc =
      Json::parse(text({table, {{"sink", "L3H5 is a sink", true, 3, 5, 0.9, 0.1, 0.3}}, {"cut"}, manifest}));
  EXPECT_EQ(doc["verdict"][0], (Json{{"topic", "sink"},
                                     {"sentence", "L3H5 is a sink"},
                                     {"known", true},
                                     {"layer", 3},
                                     {"head", 5},
                                     {"value", 0.9},
                                     {"baseline", 0.1},
                                     {"threshold", 0.3},
                                     {"found", false},
                                     {"asked", false}}));
  EXPECT_EQ(doc["notes"][0], "cut");
}

TEST(JsonReport, TextThatIsNotUtf8IsReplacedNotThrown) {
  ResultTable table;
  table.rows.push_back(plain_row("bad\xff\x80", 1));
  const Json manifest = {{"path", "\xc3("}};
  const Json doc = Json::parse(text({table, {}, {"\xf0\x9f"}, manifest}));
  EXPECT_EQ(doc["metrics"][0]["variant"], "bad\uFFFD\uFFFD");
  EXPECT_TRUE(Json::accept(manifest_text(manifest)));
}

}  // namespace
}  // namespace rankscope
