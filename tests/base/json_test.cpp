#include "base/json.h"

#include "base/test_support.h"

namespace rankscope {
namespace {

using test::error_of;

class JsonGetters : public testing::Test {
 protected:
  Json json_ = parse_json(R"({"n": 3, "neg": -2, "big": 18446744073709551615, "x": 0.5, "s": "t", "b": true,
                              "null": null, "list": [1]})",
                          "f.json");
  JsonObject object_{json_, "f.json"};
};

TEST(ParseJson, NamesFileLineAndByte) {
  const Error error = error_of([] { parse_json("{\n  \"a\": ,\n}", "c.json"); });
  EXPECT_EQ(error.message(), "this is not valid JSON");
  EXPECT_EQ(error.place(), "c.json, line 2, byte 9");
}

TEST(ParseJson, RefusesAnEmptyText) {
  EXPECT_EQ(error_of([] { parse_json("", "c"); }).place(), "c, line 1, byte 0");
}

TEST(ParseJson, RefusesDeepNesting) {
  const Error error = error_of([] { parse_json(std::string(1'000'000, '['), "c.json"); });
  EXPECT_EQ(error.message(), "this JSON is nested more than 64 deep");
  EXPECT_NO_THROW(parse_json(std::string(60, '[') + std::string(60, ']'), "c.json"));
}

TEST(ParseJson, RefusesMoreValuesThanMemoryIsMeantFor) {
  std::string text = "[0";
  text.reserve(size_t{1} << 26);
  while (text.size() < size_t{1} << 25) text += ",0";  // 2^24 values and the list
  EXPECT_EQ(error_of([&] { parse_json(text + "]", "c.json"); }).message(),
            "this JSON holds more than 16777216 values and names");
}

// A parser that looks through the list again behind each of them takes a minute for these.
TEST(ParseJson, ReadsListsOfManyObjects) {
  constexpr size_t kObjects = 300'000;
  std::string text = "[{}";
  for (size_t i = 1; i < kObjects; ++i) text += ",{}";
  EXPECT_EQ(parse_json(text + "]", "c.json").size(), kObjects);
}

TEST(ParseJson, RefusesNumbersBeyondDouble) {
  EXPECT_EQ(error_of([] { parse_json("[1e999]", "c"); }).message(),
            "this JSON holds a number too large to read");
}

TEST(ParseJson, RefusesInvalidUtf8) { EXPECT_THROW(parse_json("\"\xff\"", "c"), Error); }

TEST(JsonObject, RefusesWhatIsNotAnObject) {
  EXPECT_EQ(error_of([] { JsonObject(Json::array(), "c.json"); }).message(),
            "expected a JSON object, but got array");
}

TEST_F(JsonGetters, ReadWhatIsThere) {
  EXPECT_EQ(object_.integer("n", 0, 10), 3);
  EXPECT_EQ(object_.integer("neg", -5, 10), -2);
  EXPECT_EQ(object_.number("x", 0, 1), 0.5);
  EXPECT_EQ(object_.number("n", 0, 10), 3.0);
  EXPECT_TRUE(object_.boolean("b", false));
  EXPECT_EQ(object_.string("s"), "t");
}

TEST_F(JsonGetters, FallBackWhereTheKeyIsMissingOrNull) {
  EXPECT_EQ(object_.integer("none", 0, 1, 7), 7);
  EXPECT_EQ(object_.integer("null", 0, 1, 7), 7);
  EXPECT_EQ(object_.number("null", 0, 1, 2.5), 2.5);
  EXPECT_TRUE(object_.boolean("null", true));
  EXPECT_EQ(object_.string("null", "d"), "d");
}

TEST_F(JsonGetters, TellNullFromAbsent) {
  EXPECT_FALSE(object_.has("null"));
  EXPECT_TRUE(object_.mentions("null"));
  EXPECT_FALSE(object_.mentions("none"));
}

TEST_F(JsonGetters, NameTheMissingKey) {
  const Error error = error_of([&] { object_.integer("none", 0, 1); });
  EXPECT_EQ(error.message(), "the key \"none\" is missing");
  EXPECT_EQ(error.place(), "f.json");
}

TEST_F(JsonGetters, NameKeyRangeAndValueWhenOutOfRange) {
  EXPECT_EQ(error_of([&] { object_.integer("n", 4, 9); }).message(),
            "\"n\" should be a whole number from 4 to 9, but is 3");
  EXPECT_EQ(error_of([&] { object_.integer("x", 0, 9); }).message(),
            "\"x\" should be a whole number from 0 to 9, but is 0.5");
  EXPECT_EQ(error_of([&] { object_.integer("list", 0, 9, 5); }).message(),
            "\"list\" should be a whole number from 0 to 9, but is [1]");
  EXPECT_EQ(error_of([&] { object_.number("s", 0, 1); }).message(),
            "\"s\" should be a number from 0 to 1, but is \"t\"");
}

TEST_F(JsonGetters, DoNotWrapAboveTheSignedRange) {
  EXPECT_THROW(object_.integer("big", INT64_MIN, INT64_MAX), Error);
}

TEST_F(JsonGetters, RefuseTheWrongType) {
  EXPECT_EQ(error_of([&] { object_.boolean("n", true); }).message(), "\"n\" should be true or false");
  EXPECT_EQ(error_of([&] { object_.string("n"); }).message(), "\"n\" should be a string");
}

}  // namespace
}  // namespace rankscope
