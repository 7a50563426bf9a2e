#include "text/support.h"

namespace rankscope::test {
namespace {

std::string base64(const std::string& bytes) {
  const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? letters[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string little_endian(uint32_t value) {
  std::string out;
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

Json charsmap(const std::vector<uint32_t>& units, const std::string& pool) {
  std::string bytes = little_endian(static_cast<uint32_t>(4 * units.size()));
  for (const uint32_t unit : units) bytes += little_endian(unit);
  return {{"type", "Precompiled"}, {"precompiled_charsmap", base64(bytes + pool)}};
}

// A double array that knows one key, "a": unit 0 leads to 1 ^ 'a', whose leaf is there too.
std::vector<uint32_t> knows_a(uint32_t value) {
  std::vector<uint32_t> units(256, 0);
  units[0] = 1u << 10;                        // children at 1 ^ label
  units[1 ^ 'a'] = 'a' | 1u << 8 | 2u << 10;  // label, has a leaf, leaf at (1 ^ 'a') ^ 2
  units[1 ^ 'a' ^ 2] = value | 1u << 31;
  return units;
}

TEST(Precompiled, ReplacesWhatItsTrieKnows) {
  const std::string pool("xy\0", 3);
  EXPECT_EQ(normalized(charsmap(knows_a(0), pool), "bab"), "bxyb");
  EXPECT_EQ(normalized(charsmap(knows_a(1), pool), "a"), "y");
  EXPECT_EQ(normalized(charsmap(knows_a(2), pool), "bab"), "bb") << "an empty replacement";
}

TEST(Precompiled, ReplacesAShortClusterByTheReplacementOfItsPrefix) {
  const std::string pool("xy\0", 3);
  EXPECT_EQ(normalized(charsmap(knows_a(0), pool), "a\u0301"), "xy") << "three bytes: the mark goes too";
  EXPECT_EQ(normalized(charsmap(knows_a(0), pool), "a\u0301\u0301\u0301"), "xy\u0301\u0301\u0301")
      << "seven bytes";
}

TEST(Precompiled, RefusesDamagedMaps) {
  const auto refused = [](const Json& json) { return error_of([&] { normalized(json, "bab"); }); };
  const auto because = [](const char* why) {
    return std::string("error: precompiled_charsmap is ") + why + "\n  in   tokenizer.json\n";
  };
  EXPECT_EQ(refused(charsmap(knows_a(7), "xy")), because("damaged: it points outside its strings"));
  EXPECT_EQ(refused(charsmap(knows_a(1), "é")), because("damaged: it points outside its strings"));
  EXPECT_EQ(refused(charsmap({0xFFFFFFFFu}, "x")), because("damaged: its trie points outside"));
  EXPECT_EQ(refused(charsmap({}, "x")), because("damaged: its trie does not fit"));
  EXPECT_EQ(refused(charsmap(knows_a(0), "\xFF")), because("damaged: its strings are not UTF-8"));
  const auto raw = [](const char* text) {
    return Json{{"type", "Precompiled"}, {"precompiled_charsmap", text}};
  };
  EXPECT_EQ(refused(raw("")), because("damaged: its trie does not fit"));
  EXPECT_EQ(refused(raw("/////w==")), because("damaged: its trie does not fit"));
  EXPECT_EQ(refused(raw("abc")), because("not base64: its length is no multiple of four"));
  EXPECT_EQ(refused(raw("ab c")), because("not base64"));
}

}  // namespace
}  // namespace rankscope::test
