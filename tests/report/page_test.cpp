#include "report/page.h"

#include <gtest/gtest.h>

#include "report/page_sample.h"
#include "tables.h"

namespace rankscope {
namespace {

const std::string kPlanted =
    "</script><script>x</script>'\"&\xE2\x80\xAE\xE2\x80\xA8\xE2\x80\xA9" + std::string(1, '\0');

std::string page_of(const ResultTable& table, const Json& manifest, std::span<const NamedArray> arrays = {},
                    bool live = false) {
  Results results(table, {{kPlanted, kPlanted}}, {kPlanted}, manifest);
  results.arrays = arrays;
  results.name = kPlanted;
  PageContent content;
  content.scans = {&results};
  content.live = live;
  std::string out;
  write_page(content, [&](std::string_view piece) { out += piece; });
  return out;
}

// The data element's text, read as a browser reads it: up to the first end tag.
Json data_of(const std::string& page) {
  const std::string open = "id=\"rankscope-data\">";
  const size_t begin = page.find(open) + open.size();
  return Json::parse(page.substr(begin, page.find("</script", begin) - begin));
}

TEST(Page, DataReadsBackAndCannotEndItsElement) {
  ResultTable table;
  add_variant(table, kPlanted, 2, 0.1, 0.5);
  const Json manifest{{"model", kPlanted}, {kPlanted, kPlanted}};
  const std::string page = page_of(table, manifest);
  EXPECT_EQ(page.find("<script>x"), std::string::npos);
  EXPECT_EQ(page.find("\xE2\x80\xA8"), std::string::npos);
  const Json data = data_of(page);
  const Json& scan = data["scans"][0];
  EXPECT_EQ(scan["manifest"], manifest);
  EXPECT_EQ(scan["name"], kPlanted);
  EXPECT_EQ(scan["notes"][0], kPlanted);
  EXPECT_EQ(scan["verdict"][0]["sentence"], kPlanted);
  EXPECT_NE(std::find(scan["strings"].begin(), scan["strings"].end(), kPlanted), scan["strings"].end());
}

TEST(Page, EveryRowIsInItToTheLastDigit) {
  ResultTable table;
  add_variant(table, "full", 3, 0.1, 1.0 / 3.0);
  table.rows.push_back({"full", "x", 0, 5, "odd", 5e-324, INFINITY, 7, -1, "all"});
  const Json scan = data_of(page_of(table, Json::object()))["scans"][0];
  size_t i = 0;
  for (const Json& group : scan["groups"])
    for (size_t k = 0; k < group[8].size(); ++k, ++i) {
      const Row& row = table.rows.at(i);
      EXPECT_EQ(group[8][k].get<double>(), row.value);
      EXPECT_EQ(scan["strings"][group[3].get<size_t>()], row.metric.str());
      EXPECT_EQ(group[6].is_null() ? -1 : group[6].get<int>() + static_cast<int>(k), row.head);
    }
  EXPECT_EQ(i, table.rows.size());
  EXPECT_EQ(scan["groups"].back()[9][0], "inf");
}

TEST(Page, AGroupHasAStreamWhereTheNetworkHasSeveral) {
  ResultTable table;
  for (const char* stream : {"encoder", "encoder", "decoder"})
    table.rows.push_back(
        {"full", "x", 0, static_cast<int>(table.rows.size()), "m", 1, 0, 1, 0, "all", stream});
  const Json scan = data_of(page_of(table, Json::object()))["scans"][0];
  ASSERT_EQ(scan["groups"].size(), 2u);
  EXPECT_EQ(scan["groups"][0][8].size(), 2u);
  EXPECT_EQ(scan["strings"][scan["groups"][0][10].get<size_t>()], "encoder");
  EXPECT_EQ(scan["strings"][scan["groups"][1][10].get<size_t>()], "decoder");
}

TEST(Page, OnlyALivePageMayAskItsOwnServer) {
  const ResultTable table;
  EXPECT_NE(page_of(table, {}).find("connect-src 'none'"), std::string::npos);
  EXPECT_EQ(page_of(table, {}, {}, true).find("connect-src 'none'"), std::string::npos);
  EXPECT_NE(page_of(table, {}, {}, true).find("connect-src 'self'"), std::string::npos);
}

TEST(Page, TextThatIsNotUtf8IsReplaced) {
  ResultTable table;
  table.rows.push_back(plain_row("\xFF\xC0", 1));
  EXPECT_EQ(data_of(page_of(table, Json::object()))["scans"][0]["strings"][0], "\uFFFD\uFFFD");
}

TEST(Page, Base64IsThatOfTheStandard) {
  const auto of = [](std::string_view s) {
    return base64({reinterpret_cast<const unsigned char*>(s.data()), s.size()});
  };
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("f"), "Zg==");
  EXPECT_EQ(of("fo"), "Zm8=");
  EXPECT_EQ(of("foo"), "Zm9v");
  EXPECT_EQ(of("foobar"), "Zm9vYmFy");
}

TEST(Page, ShownSampleCarriesMapsSpectraAndWhatIsAttended) {
  const std::vector<NamedArray> arrays{
      {"blocks.10.attn.hook_pattern.pooled", {1, 2, 2}, {1, 0, 0.25f, 0.75f}},
      {"blocks.10.attn.hook_pattern.received", {1, 3}, {0.2f, 0.5f, 0.3f}},
      {"blocks.10.attn.hook_pattern.spectrum", {1, 3}, {2, 1, 0.5f}},
      {"blocks.10.attn.qk_spectrum", {1, 2}, {4, 0}},
      {"blocks.x.attn.qk_spectrum", {1, 2}, {4, 0}},
      {"blocks.11.attn.hook_pattern.pooled", {1, 2, 3}, {1, 0, 0, 0, 0, 0}},  // not square: left out
  };
  const Json shown =
      data_of(page_of({}, {{"input", {{"shown", {{"sample", 0}, {"tokens", {"a", "b", "c"}}}}}}},
                      arrays))["scans"][0]["shown"];
  EXPECT_EQ(shown["tokens"].size(), 3u);
  EXPECT_EQ(shown["length"], 3);
  ASSERT_EQ(shown["layers"].size(), 1u);
  const Json& layer = shown["layers"][0];
  EXPECT_EQ(layer["layer"], 10);
  EXPECT_EQ(layer["maps"], "/wCA3Q==");  // 255, 0, 128 (the root of a quarter), 221
  EXPECT_EQ(layer["received"][0][0][0], 1);
  EXPECT_EQ(layer["spectra"]["pattern"]["at"], (Json{1, 2, 3}));
  EXPECT_EQ(layer["spectra"]["qk"]["values"][0], (Json{4, 0}));
}

TEST(Page, CausalHeadsAreNotRankedByKeysThatFewQueriesSee) {
  const NamedArray received{"blocks.0.attn.hook_pattern.received",
                            {2, 8},
                            {.1f, .2f, 0, 0, 0, .3f, .6f, 1, .1f, .2f, 0, 0, 0, .3f, .6f, 1}};
  // The first head looks back only, the second looks ahead, too.
  const NamedArray pooled{
      "blocks.0.attn.hook_pattern.pooled", {2, 2, 2}, {1, 0, .5f, .5f, .5f, .5f, .5f, .5f}};
  const std::vector<NamedArray> arrays{pooled, received};
  const Json shown =
      data_of(page_of({}, {{"input", {{"shown", {{"sample", 0}}}}}}, arrays))["scans"][0]["shown"];
  const Json& heads = shown["layers"][0]["received"];
  EXPECT_EQ(heads[0][0][0], 5)
      << "three of eight queries see it; the last two keys are seen by two and by one";
  EXPECT_EQ(heads[1][0][0], 7);
}

TEST(Page, HoldsTheTokenMapOfAnOperatorWhereBothReadingsAreSquareAndAlike) {
  const NamedArray in{"operator.map.in", {2, 2}, {1, 0, INFINITY, 0.5f}};
  const NamedArray in_out{"operator.map.in_out", {2, 2}, {-1, 0, 0.25f, 2}};
  const auto map_of = [](const std::vector<NamedArray>& arrays) {
    return data_of(page_of({}, Json::object(), arrays))["scans"][0]["map"];
  };
  const Json map = map_of({in, in_out});
  EXPECT_EQ(map["side"], 2);
  EXPECT_EQ(map["in"], (Json{1, 0, nullptr, 0.5}));
  EXPECT_EQ(map["in_out"], (Json{-1, 0, 0.25, 2}));
  EXPECT_TRUE(map_of({in}).is_null());
  EXPECT_TRUE(map_of({in, {"operator.map.in_out", {1, 4}, {1, 2, 3, 4}}}).is_null());
  EXPECT_TRUE(map_of({in, {"operator.map.in_out", {1, 1}, {1}}}).is_null());
}

TEST(Page, StreamsAreShownBesideTheOneThatEndsInTheOutput) {
  const std::vector<NamedArray> arrays{
      {"blocks.0.attn.hook_pattern.pooled", {1, 2, 2}, {1, 0, 0.5f, 0.5f}},
      {"blocks.0.cross.hook_pattern.pooled", {1, 2, 3}, {1, 0, 0, 0, 1, 0}},
      {"blocks.0.cross.hook_pattern.received", {1, 3}, {0.5f, 0.5f, 0}},
      {"encoder.blocks.0.attn.hook_pattern.pooled", {1, 3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}}};
  const Json manifest{
      {"input", {{"shown", {{"sample", 0}, {"tokens", {"s", "a"}}, {"encoder", {"a", "b", "c"}}}}}}};
  const Json shown = data_of(page_of({}, manifest, arrays))["scans"][0]["shown"];
  EXPECT_EQ(shown["length"], 2);
  EXPECT_EQ(shown["layers"][0]["side"], 2);
  EXPECT_FALSE(shown["layers"][0].contains("rows"));
  const Json &cross = shown["streams"]["cross"], &encoder = shown["streams"]["encoder"];
  EXPECT_EQ(cross["layers"][0]["rows"], 2);
  EXPECT_EQ(cross["layers"][0]["side"], 3);
  EXPECT_EQ(cross["tokens"], (Json{"s", "a"}));
  EXPECT_EQ(cross["keys"]["tokens"], (Json{"a", "b", "c"}));
  EXPECT_EQ(cross["keys"]["length"], 3);
  EXPECT_EQ(encoder["tokens"], (Json{"a", "b", "c"}));
  EXPECT_EQ(encoder["length"], 3);
}

TEST(Page, ArraysAndManifestsMayHoldAnything) {
  const std::vector<NamedArray> arrays{
      {"blocks.0.attn.hook_pattern.pooled", {1, 2, 2}, {INFINITY, NAN, -1, 0.5f}}};
  const Json manifest{{"input", {{"shown", {{"sample", "x"}, {"tokens", {1, "a", nullptr}}}}}}};
  const Json shown = data_of(page_of({}, manifest, arrays))["scans"][0]["shown"];
  EXPECT_EQ(shown["sample"], 0);
  EXPECT_EQ(shown["tokens"], (Json{"", "a", ""}));
  EXPECT_EQ(shown["layers"][0]["maps"], "AAAA/w==");  // what is no weight is drawn as none
  EXPECT_EQ(shown["layers"][0]["peaks"][0], 0.5);
}

}  // namespace
}  // namespace rankscope
