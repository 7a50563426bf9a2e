#include "text/support.h"

namespace rankscope::test {
namespace {

std::unique_ptr<Tokenizer> with(const Json& processor) {
  return tokenizer({{"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
                    {"post_processor", processor},
                    {"model", word_level({"a", "b", "c"})}});
}

const Json kBert{{"type", "BertProcessing"}, {"sep", {"[SEP]", 8}}, {"cls", {"[CLS]", 9}}};
const Json kRoberta{{"type", "RobertaProcessing"}, {"sep", {"</s>", 8}}, {"cls", {"<s>", 9}}};

Json special(const char* id, int type) { return {{"SpecialToken", {{"id", id}, {"type_id", type}}}}; }
Json sequence(const char* id, int type) { return {{"Sequence", {{"id", id}, {"type_id", type}}}}; }
Json templated() {
  return {{"type", "TemplateProcessing"},
          {"single", {sequence("A", 0), special("E", 2)}},
          {"pair", {sequence("B", 1), special("E", 3), sequence("A", 0)}},
          {"special_tokens", {{"E", {{"id", "E"}, {"ids", {7, 8}}, {"tokens", {"x", "y"}}}}}}};
}

TEST(WithoutPostProcessor, PairsAreJoined) {
  const Encoding e = with(nullptr)->encode_pair("a b", "c");
  EXPECT_EQ(e.ids, (Ids{1, 2, 3}));
  EXPECT_EQ(e.types, (Ids{0, 0, 1}));
  EXPECT_EQ(e.special, (std::vector<bool>{false, false, false}));
}

TEST(BertProcessing, FramesBothSequences) {
  const Encoding e = with(kBert)->encode_pair("a b", "c");
  EXPECT_EQ(e.ids, (Ids{9, 1, 2, 8, 3, 8}));
  EXPECT_EQ(e.types, (Ids{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(e.special, (std::vector<bool>{true, false, false, true, false, true}));
  EXPECT_EQ(with(kBert)->encode("").ids, (Ids{9, 8}));
  EXPECT_EQ(with(kBert)->encode("a", false).ids, (Ids{1}));
  EXPECT_EQ(with(kBert)->encode_pair("a", "b", false).types, (Ids{0, 1}));
}

TEST(RobertaProcessing, DoublesTheSeparatorAndHasOneType) {
  const Encoding e = with(kRoberta)->encode_pair("a", "b");
  EXPECT_EQ(e.ids, (Ids{9, 1, 8, 8, 2, 8}));
  EXPECT_EQ(e.types, (Ids{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(with(kRoberta)->encode_pair("a", "b", false).types, (Ids{0, 0}));
}

TEST(TemplateProcessing, FollowsItsTemplates) {
  const auto t = with(templated());
  EXPECT_EQ(t->encode("a").ids, (Ids{1, 7, 8}));
  EXPECT_EQ(t->encode("a").types, (Ids{0, 2, 2}));
  const Encoding e = t->encode_pair("a", "b");
  EXPECT_EQ(e.ids, (Ids{2, 7, 8, 1}));
  EXPECT_EQ(e.types, (Ids{1, 3, 3, 0}));
  EXPECT_EQ(t->encode_pair("a", "b", false).ids, (Ids{2, 1})) << "the order of the template stays";
}

TEST(ByteLevelProcessing, ChangesNoIds) {
  const Json byte_level{{"type", "ByteLevel"}, {"trim_offsets", true}};
  EXPECT_EQ(with(byte_level)->encode("a").ids, (Ids{1}));
  EXPECT_EQ(with({{"type", "Sequence"}, {"processors", {byte_level, kBert}}})->encode("a").ids,
            (Ids{9, 1, 8}));
}

TEST(PostProcessorErrors, NameWhatIsWrong) {
  const auto error = [](const Json& json) {
    const std::string text = error_of([&] { with(json); });
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(error({{"type", "Frame"}}), "error: the post-processor \"Frame\" is not supported");
  EXPECT_EQ(error({{"type", "BertProcessing"}, {"sep", 3}}), "error: the key \"cls\" is missing");
  EXPECT_EQ(error({{"type", "BertProcessing"}, {"sep", 3}, {"cls", {"a", -1}}}),
            "error: \"cls\" should be a token and its id");
  EXPECT_EQ(error({{"type", "Sequence"}, {"processors", {kBert, kRoberta}}}),
            "error: two post-processors that add tokens, one behind the other, are not supported");
  Json json = templated();
  json["single"].push_back(special("F", 0));
  EXPECT_EQ(error(json), "error: the template uses \"F\", which is not among its special tokens");
  json = templated();
  json["single"].push_back(sequence("B", 0));
  EXPECT_EQ(error(json), "error: the template \"single\" uses the sequence B");
  json["single"][0] = sequence("C", 0);
  EXPECT_EQ(error(json), "error: there is no sequence \"C\", only A and B");
  json["single"][0] = "[CLS]";
  EXPECT_EQ(error(json), "error: expected a JSON object, but got string");
  json = templated();
  json["special_tokens"]["E"]["ids"] = {-1};
  EXPECT_EQ(error(json),
            "error: an id of the special token \"E\" is not a whole number from 0 to 2147483647");
  json = templated();
  for (int i = 0; i < 3000; ++i) json["pair"].push_back(special("E", 0));
  EXPECT_EQ(error(json), "error: the template \"pair\" has more than 4096 parts");
}

}  // namespace
}  // namespace rankscope::test
