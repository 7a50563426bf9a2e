#include "checkpoint/safetensors.h"

#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "base/test_support.h"

namespace rankscope {
namespace {

using test::error_of;
using test::files_in;
using test::put;
using test::TempFolder;

std::string length_of(uint64_t n) {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(n >> (8 * i));
  return out;
}

// A file with this header and so many bytes of data.
std::string file_of(const std::string& header, size_t data) {
  return length_of(header.size()) + header + std::string(data, '\1');
}

std::map<std::string, TensorEntry> parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), file.size(), "m.safetensors");
}

// Message and place of the refusal, as the user reads them.
std::string refusal(const std::string& file) {
  const Error error = error_of([&] { parse(file); });
  return error.message() + " | " + error.place();
}

std::string entry(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}
std::string one(const std::string& type, const std::string& shape, const std::string& offsets) {
  return "{\"a\":" + entry(type, shape, offsets) + "}";
}

TEST(SafetensorsHeader, GivesTypesShapesAndBytes) {
  const std::string header = R"({"__metadata__":{"format":"pt"},"b":)" + entry("F16", "[2,3]", "[4,16]") +
                             R"(,"a":)" + entry("F32", "[]", "[0,4]") + "}";
  const auto tensors = parse(file_of(header, 16));
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors.at("a").type, StoredType::f32);
  EXPECT_EQ(tensors.at("a").elements(), 1);
  EXPECT_EQ(tensors.at("b").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensors.at("b").begin, 8 + header.size() + 4);
  EXPECT_EQ(tensors.at("b").end, 8 + header.size() + 16);
  EXPECT_EQ(tensors.at("b").elements(), 6);
}

TEST(SafetensorsHeader, AcceptsPaddingNoTensorsAndEmptyOnes) {
  EXPECT_TRUE(parse(file_of("{}      ", 0)).empty());
  EXPECT_EQ(parse(file_of(one("F32", "[0,9223372036854775807,3]", "[0,0]"), 0)).at("a").elements(), 0);
}

TEST(SafetensorsHeader, AcceptsDataThatIsNotAligned) {  // early writers did not pad
  const std::string header =
      "{\"a\":" + entry("U8", "[1]", "[0,1]") + ",\"b\":" + entry("F32", "[1]", "[1,5]") + "}";
  EXPECT_EQ(parse(file_of(header, 5)).at("b").begin % 4, (8 + header.size() + 1) % 4);
}

TEST(SafetensorsHeader, KnowsEveryTypeItStores) {
  for (const StoredType type :
       {StoredType::f64, StoredType::f32, StoredType::f16, StoredType::bf16, StoredType::i64, StoredType::i32,
        StoredType::i16, StoredType::i8, StoredType::u8, StoredType::boolean}) {
    const size_t size = size_of(type);
    const auto file =
        file_of(one(std::string(to_string(type)), "[1]", "[0," + std::to_string(size) + "]"), size);
    EXPECT_EQ(parse(file).at("a").type, type);
  }
}

TEST(SafetensorsHeader, RefusesALengthThatCannotBe) {
  EXPECT_EQ(refusal(""), "the file has 0 bytes, too few for a safetensors header | m.safetensors");
  EXPECT_EQ(refusal("1234567"), "the file has 7 bytes, too few for a safetensors header | m.safetensors");
  EXPECT_EQ(refusal(length_of(0) + "{}"), "the header's length is 0 | m.safetensors, byte 0");
  EXPECT_EQ(refusal(length_of(3) + "{}"),
            "the header's length is 3, but only 2 bytes follow | m.safetensors, byte 0");
  EXPECT_EQ(refusal(length_of(UINT64_MAX) + "{}"),
            "the header's length is 18446744073709551615, but only 2 bytes follow | m.safetensors, byte 0");
}

TEST(SafetensorsHeader, RefusesOneAboveAHundredMegabytes) {
  const std::string start = length_of(100'000'001) + "{}";
  const Error error = error_of(
      [&] { parse_safetensors_header(std::as_bytes(std::span(start)), 1'000'000'000, "m.safetensors"); });
  EXPECT_EQ(error.message(), "the header's length is 100000001, more than the 100000000 allowed");
}

TEST(SafetensorsHeader, RefusesOneThatIsCutShort) {
  const std::string start = length_of(100) + "{}";
  EXPECT_EQ(error_of([&] { parse_safetensors_header(std::as_bytes(std::span(start)), 1000, "m"); }).message(),
            "the header is cut short");
}

TEST(SafetensorsHeader, RefusesInvalidJsonAndNamesTheByte) {
  EXPECT_EQ(refusal(file_of("{\"a\":", 0)), "the header is not valid JSON | m.safetensors, byte 13");
  EXPECT_EQ(refusal(file_of("{} x", 0)), "the header is not valid JSON | m.safetensors, byte 11");
  EXPECT_EQ(refusal(file_of("{\"\xff\":1}", 0)), "the header is not valid JSON | m.safetensors, byte 10");
}

TEST(SafetensorsHeader, RefusesWhatIsNotAnObjectOfObjects) {
  EXPECT_EQ(refusal(file_of("[]", 0)), "expected the header to be an object, but got a list | m.safetensors");
  EXPECT_EQ(refusal(file_of("null", 0)), "expected the header to be an object, but got null | m.safetensors");
  EXPECT_EQ(refusal(file_of("7", 0)),
            "expected the header to be an object, but got a number | m.safetensors");
  EXPECT_EQ(refusal(file_of(R"({"a":7})", 0)),
            "expected its entry to be an object, but got a number | m.safetensors, tensor \"a\"");
  EXPECT_EQ(refusal(file_of(R"({"a":[]})", 0)),
            "expected its entry to be an object, but got a list | m.safetensors, tensor \"a\"");
}

TEST(SafetensorsHeader, RefusesEntriesOfTheWrongForm) {
  const auto of = [](const std::string& e) { return refusal(file_of("{\"a\":{" + e + "}}", 0)); };
  const std::string at = " | m.safetensors, tensor \"a\"";
  EXPECT_EQ(of(R"("dtype":1)"), "expected \"dtype\" to be a string, but got a number" + at);
  EXPECT_EQ(of(R"("dtype":["F32"])"), "expected \"dtype\" to be a string, but got a list" + at);
  EXPECT_EQ(of(R"("shape":"x")"), "expected \"shape\" to be a list of whole numbers, but got a string" + at);
  EXPECT_EQ(of(R"("shape":{})"), "expected \"shape\" to be a list of whole numbers, but got an object" + at);
  EXPECT_EQ(of(R"("shape":[[1]])"), "expected \"shape\" to be a list of whole numbers, but got a list" + at);
  EXPECT_EQ(of(R"("shape":[true])"),
            "expected \"shape\" to be a list of whole numbers, but got a boolean" + at);
  EXPECT_EQ(of(R"("shape":[null])"), "expected \"shape\" to be a list of whole numbers, but got null" + at);
  EXPECT_EQ(of(R"("extra":1)"), "the key \"extra\" does not belong in a tensor's entry" + at);
  EXPECT_EQ(of(R"("shape":[1],"shape":[1])"), "\"shape\" comes twice" + at);
  EXPECT_EQ(of(R"("dtype":"F32","dtype":"F32")"), "\"dtype\" comes twice" + at);
  EXPECT_EQ(of(R"("shape":[1],"data_offsets":[0,4])"), "the key \"dtype\" is missing" + at);
  EXPECT_EQ(of(R"("dtype":"F32","data_offsets":[0,4])"), "the key \"shape\" is missing" + at);
  EXPECT_EQ(of(R"("dtype":"F32","shape":[1])"), "the key \"data_offsets\" is missing" + at);
  EXPECT_EQ(of(R"("dtype":"F32","shape":[1],"data_offsets":[0])"), "expected 2 data_offsets, but got 1" + at);
}

TEST(SafetensorsHeader, RefusesMetadataThatIsNotText) {
  EXPECT_EQ(refusal(file_of(R"({"__metadata__":{"n":1}})", 0)),
            "expected a string for \"n\", but got a number | m.safetensors, tensor \"__metadata__\"");
  EXPECT_EQ(refusal(file_of(R"({"__metadata__":3})", 0)),
            "expected its entry to be an object, but got a number | m.safetensors, tensor \"__metadata__\"");
  EXPECT_EQ(refusal(file_of(R"({"__metadata__":{},"__metadata__":{}})", 0)),
            "the header names \"__metadata__\" twice | m.safetensors");
}

TEST(SafetensorsHeader, RefusesANameThatComesTwice) {
  const std::string a = "\"a\":" + entry("U8", "[1]", "[0,1]");
  EXPECT_EQ(refusal(file_of("{" + a + "," + a + "}", 1)), "the header names \"a\" twice | m.safetensors");
}

TEST(SafetensorsHeader, RefusesTypesItDoesNotKnowByName) {
  EXPECT_EQ(refusal(file_of(one("F8_E4M3", "[1]", "[0,1]"), 1)),
            "its type \"F8_E4M3\" is not supported | m.safetensors, tensor \"a\"");
  EXPECT_EQ(refusal(file_of(one("f32", "[1]", "[0,4]"), 4)),
            "its type \"f32\" is not supported | m.safetensors, tensor \"a\"");
}

TEST(SafetensorsHeader, RefusesShapesThatAreNegativeBrokenOrTooLarge) {
  const auto of = [](const std::string& shape) { return refusal(file_of(one("F32", shape, "[0,4]"), 4)); };
  const std::string at = " | m.safetensors, tensor \"a\"";
  EXPECT_EQ(of("[-1]"), "\"shape\" holds -1, but must not be negative" + at);
  EXPECT_EQ(of("[1.5]"), "\"shape\" holds 1.5, which is not a whole number that fits" + at);
  EXPECT_EQ(of("[1e3]"), "\"shape\" holds 1e3, which is not a whole number that fits" + at);
  EXPECT_EQ(of("[99999999999999999999]"),
            "\"shape\" holds 99999999999999999999, which is not a whole number that fits" + at);
  EXPECT_EQ(of("[9223372036854775808]"), "\"shape\" holds 9223372036854775808, which is too large" + at);
  EXPECT_EQ(of("[4294967296,4294967296]"),
            "shape [4294967296, 4294967296] of F32 needs too many bytes, but its offsets hold 4" + at);
  EXPECT_EQ(of("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"), "\"shape\" has more than 16 entries" + at);
}

TEST(SafetensorsHeader, RefusesOffsetsThatDoNotFitTheShape) {
  EXPECT_EQ(refusal(file_of(one("F32", "[2]", "[0,4]"), 4)),
            "shape [2] of F32 needs 8 bytes, but its offsets hold 4 | m.safetensors, tensor \"a\"");
  EXPECT_EQ(refusal(file_of(one("F32", "[0]", "[0,4]"), 4)),
            "shape [0] of F32 needs 0 bytes, but its offsets hold 4 | m.safetensors, tensor \"a\"");
  EXPECT_EQ(refusal(file_of(one("F32", "[1]", "[4,0]"), 4)),
            "its data ends at 0 before it begins at 4 | m.safetensors, tensor \"a\"");
  EXPECT_EQ(refusal(file_of(one("F32", "[1]", "[-4,0]"), 4)),
            "\"data_offsets\" holds -4, but must not be negative | m.safetensors, tensor \"a\"");
}

TEST(SafetensorsHeader, RefusesDataBeyondTheFile) {
  const std::string header = one("F32", "[2]", "[0,8]");  // 54 bytes and the length: the data begins at 62
  ASSERT_EQ(header.size(), 54u);
  EXPECT_EQ(refusal(file_of(header, 7)),
            "its data ends at byte 70, but the file has 69 | m.safetensors, tensor \"a\"");
}

TEST(SafetensorsHeader, RefusesOverlapsHolesAndLeftovers) {
  const auto two = [](const std::string& a, const std::string& b, size_t data) {
    return refusal(
        file_of("{\"a\":" + entry("U8", "[4]", a) + ",\"b\":" + entry("U8", "[4]", b) + "}", data));
  };
  EXPECT_EQ(two("[0,4]", "[3,7]", 7),
            "its data overlaps that of \"a\" | m.safetensors, tensor \"b\", byte 116");
  EXPECT_EQ(two("[0,4]", "[0,4]", 4),
            "its data overlaps that of \"a\" | m.safetensors, tensor \"b\", byte 113");
  EXPECT_EQ(two("[0,4]", "[6,10]", 10),
            "the 2 bytes before it belong to no tensor | m.safetensors, tensor \"b\", byte 120");
  EXPECT_EQ(two("[0,4]", "[4,8]", 9), "the last 1 bytes belong to no tensor | m.safetensors, byte 121");
}

TEST(SafetensorsHeader, EscapesHostileNames) {
  const std::string header = "{\"\\u001b[2J\":" + entry("F8", "[1]", "[0,1]") + "}";
  EXPECT_EQ(refusal(file_of(header, 1)),
            "its type \"F8\" is not supported | m.safetensors, tensor \"\\x1b[2J\"");
}

// ---- writing
// ------------------------------------------------------------------------------------------------------

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

TEST(WriteSafetensors, IsReadBackWithEveryTensorAligned) {
  const TempFolder folder;
  const auto x = bytes_of("abc"), y = bytes_of("12345678"), z = bytes_of("wxyz");
  write_safetensors(folder / "m.safetensors", {{"z", StoredType::u8, {3}, x},
                                               {"b", StoredType::f32, {2, 1}, y},
                                               {"a", StoredType::f32, {1}, z},
                                               {"empty", StoredType::f64, {0}, {}}});
  const SafetensorsFile file(folder / "m.safetensors");
  ASSERT_EQ(file.tensors().size(), 4u);
  const auto same = [&](const char* name, const std::vector<std::byte>& expected) {
    const auto got = file.bytes(file.tensors().at(name));
    return std::vector<std::byte>(got.begin(), got.end()) == expected;
  };
  EXPECT_TRUE(same("z", x));
  EXPECT_TRUE(same("b", y));
  EXPECT_TRUE(same("a", z));
  EXPECT_TRUE(same("empty", {}));
  EXPECT_LT(file.tensors().at("a").begin, file.tensors().at("b").begin);
  EXPECT_LT(file.tensors().at("b").begin, file.tensors().at("z").begin);
  for (const auto& [name, entry] : file.tensors()) EXPECT_EQ(entry.begin % size_of(entry.type), 0u) << name;
  file.release(file.tensors().at("b"));
  EXPECT_TRUE(same("b", y));
}

TEST(WriteSafetensors, PadsTheHeaderToEightBytes) {
  const TempFolder folder;
  for (const char* name : {"a", "ab", "abc", "abcd"}) {
    write_safetensors(folder / "m", {{name, StoredType::u8, {0}, {}}});
    EXPECT_EQ(test::get(folder / "m").size() % 8, 0u);
  }
}

TEST(WriteSafetensors, RefusesNamesTwiceAndDataThatDoesNotFit) {
  const TempFolder folder;
  const auto x = bytes_of("abcd");
  const auto write = [&](const std::vector<TensorToWrite>& list) {
    return error_of([&] { write_safetensors(folder / "m", list); }).message();
  };
  EXPECT_EQ(write({{"a", StoredType::u8, {4}, x}, {"a", StoredType::u8, {4}, x}}), "this name is taken");
  EXPECT_EQ(write({{"__metadata__", StoredType::u8, {4}, x}}), "this name is taken");
  EXPECT_EQ(write({{"a", StoredType::f32, {2}, x}}), "shape [2] of F32 does not hold 4 bytes");
  EXPECT_EQ(write({{"a", StoredType::f32, {-1}, x}}), "shape [-1] of F32 does not hold 4 bytes");
  EXPECT_EQ(files_in(folder.path()), 0u);
}

TEST(WriteSafetensors, OnAFullDiskLeavesNothing) {
  const TempFolder folder;
  const std::vector<std::byte> large(1 << 16);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Error error = error_of([&] {
    write_safetensors(folder / "m", {{"a", StoredType::u8, {1 << 16}, large}});
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error.message(), "cannot write the file: File too large");
  EXPECT_EQ(files_in(folder.path()), 0u);
}

}  // namespace
}  // namespace rankscope
