#include "checkpoint/architecture.h"

#include <cmath>
#include <tuple>

#include "base/test_support.h"
#include "checkpoint/configs.h"
#include "parts/parameters.h"

namespace rankscope {
namespace {

using namespace test;

ModelSpec spec_of(const Json& config) { return spec_from_config(config.dump(), "config.json"); }

// The published config with some keys set (null removes one).
Json edited(std::string_view text, const Json& changes) {
  Json config = parse_json(text, "config.json");
  for (const auto& [key, value] : changes.items()) config[key] = value;
  return config;
}

Error refusal(std::string_view text, const Json& changes) {
  return error_of([&] { spec_of(edited(text, changes)); });
}
std::string message(std::string_view text, const Json& changes) { return refusal(text, changes).message(); }

const Architecture& found(const char* text) {
  const Json json = parse_json(text, "config.json");
  return architecture_for(JsonObject(json, "config.json"));
}

TEST(ArchitectureFor, GoesByModelType) {
  EXPECT_EQ(found(R"({"model_type": "camembert"})").name, "roberta");
  EXPECT_EQ(found(R"({"model_type": "qwen2", "architectures": ["GPT2Model"]})").name, "llama");
}

TEST(ArchitectureFor, FallsBackToTheClassNames) {
  EXPECT_EQ(found(R"({"architectures": ["GPT2LMHeadModel"]})").name, "gpt2");
  EXPECT_EQ(found(R"({"architectures": ["XLMRobertaForMaskedLM"]})").name, "roberta");
  EXPECT_EQ(found(R"({"architectures": ["Odd", "ViTModel"]})").name, "vit");
}

TEST(ArchitectureFor, NamesTheUnknownAndTheKnown) {
  const Error error = error_of([] { found(R"({"model_type": "mamba"})"); });
  EXPECT_EQ(error.message(), "the model type \"mamba\" is not supported");
  EXPECT_EQ(error.advice(), "rankscope inspect --architectures lists what is read");
  EXPECT_EQ(error_of([] { found(R"({"architectures": ["ViTMAEModel", "MambaModel"]})"); }).message(),
            "there is no \"model_type\", and of the architectures [ViTMAEModel, MambaModel] none is known");
  EXPECT_EQ(error_of([] { found("{}"); }).message(), "the key \"model_type\" is missing");
  EXPECT_EQ(error_of([] { found(R"({"model_type": 3})"); }).message(), "\"model_type\" should be a string");
}

// Words that a config has and the nearest known architecture would pass over are what is different.
TEST(ArchitectureFor, NamesTheNearestKnownOneAndWhatItDoesNotKnow) {
  EXPECT_EQ(
      message(kLlama2, {{"model_type", "llama9"}, {"mixture_depth", 3}, {"attention_dropout", 0.1}}),
      "the model type \"llama9\" is not supported; the nearest known one is llama (llama, mistral, qwen2), "
      "which does not know mixture_depth");
}

TEST(Architectures, AreAlphabeticalAndNamedAfterTheirFiles) {
  for (size_t i = 1; i < architectures().size(); ++i)
    EXPECT_LT(architectures()[i - 1]->name, architectures()[i]->name);
  for (const Architecture* a : architectures()) {
    EXPECT_TRUE(
        std::filesystem::exists(source_tree() / "src/checkpoint/arch" / (std::string(a->name) + ".cpp")));
    EXPECT_FALSE(a->summary.empty());
  }
}

// ---- the contract of every architecture
// ---------------------------------------------------------------------------

class ArchitectureContract : public testing::TestWithParam<PublishedConfig> {};

TEST_P(ArchitectureContract, EveryParameterHasASourceAndEverySourceAParameter) {
  const ModelSpec promised = spec_from_config(GetParam().text, "config.json");
  ModelSpec headless = promised;
  headless.output = {};
  for (const ModelSpec& spec : {promised, headless}) {
    const Json json = parse_json(GetParam().text, "config.json");
    WeightMap sources = architecture_for(JsonObject(json, "config.json")).weights(spec);
    for (const Parameter& p : parameters(spec)) EXPECT_EQ(sources.erase(p.name), 1u) << p.name;
    EXPECT_TRUE(sources.empty()) << sources.begin()->first;
  }
}

TEST_P(ArchitectureContract, SourcesHoldTheirParameters) {
  const ModelSpec spec = spec_from_config(GetParam().text, "config.json");
  const Json json = parse_json(GetParam().text, "config.json");
  const WeightMap sources = architecture_for(JsonObject(json, "config.json")).weights(spec);
  for (const Parameter& p : parameters(spec)) {
    const Source& source = sources.at(p.name);
    EXPECT_FALSE(source.tensor.empty()) << p.name;
    const int64_t rows = source.stored_rows > 0 ? source.stored_rows : p.shape[0];
    EXPECT_LE(source.first_row + p.shape[0] / source.groups, rows / source.groups) << p.name;
    if (source.stored_shape.empty() || source.matrix >= 0) continue;
    int64_t stored = 1;
    for (const int64_t n : source.stored_shape) stored *= n;
    EXPECT_EQ(stored, element_count(p)) << p.name;
  }
}

TEST_P(ArchitectureContract, NamesItself) {
  const ModelSpec spec = spec_from_config(GetParam().text, "config.json");
  EXPECT_TRUE(std::any_of(architectures().begin(), architectures().end(),
                          [&](const Architecture* a) { return a->name == spec.architecture; }));
}

TEST_P(ArchitectureContract, RefusesSizesThatCannotBe) {
  for (const char* key :
       {"hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "vocab_size",
        "max_position_embeddings", "n_embd", "n_head", "n_layer", "n_positions", "dim", "n_heads", "n_layers",
        "hidden_dim", "d_model", "d_inner", "embedding_size", "image_size", "patch_size"}) {
    const Json config = parse_json(GetParam().text, "config.json");
    if (!config.contains(key)) continue;
    if (std::string(key) == "max_position_embeddings" && config.contains("rms_norm_eps"))
      continue;  // not used
    for (const Json& value :
         {Json(0), Json(-1), Json(1'000'000'000'000), Json(1.5), Json("12"), Json(true)}) {
      const Error error = refusal(GetParam().text, {{key, value}});
      EXPECT_NE(error.message().find('"' + std::string(key) + '"'), std::string::npos)
          << key << ": " << error.what();
      EXPECT_EQ(error.place(), "config.json");
    }
  }
}

TEST_P(ArchitectureContract, SaysWhichKeyIsMissing) {
  const Json config = parse_json(GetParam().text, "config.json");
  const char* key = config.contains("hidden_size") ? "hidden_size"
                    : config.contains("n_embd")    ? "n_embd"
                    : config.contains("dim")       ? "dim"
                                                   : "d_model";
  EXPECT_EQ(message(GetParam().text, {{key, nullptr}}), std::string("the key \"") + key + "\" is missing");
}

TEST_P(ArchitectureContract, RefusesPrunedHeads) {
  EXPECT_EQ(message(GetParam().text, {{"pruned_heads", {{"0", {1}}}}}),
            "\"pruned_heads\": a list of heads is not supported");
  EXPECT_NO_THROW(spec_of(edited(GetParam().text, {{"pruned_heads", Json::object()}})));
}

INSTANTIATE_TEST_SUITE_P(Published, ArchitectureContract, testing::ValuesIn(kPublished),
                         [](const auto& published) { return std::string(published.param.name); });

// ---- what each one refuses or reads in its own way
// ----------------------------------------------------------------

TEST(Heads, FollowTheClassesTheConfigNames) {
  EXPECT_EQ(spec_of(edited(kBertBase, {{"architectures", {"BertModel"}}})).output.kind, HeadKind::none);
  EXPECT_EQ(spec_of(edited(kBertBase, {{"architectures", {"BertForPreTraining"}}})).output.kind,
            HeadKind::transformed);
  EXPECT_EQ(spec_of(edited(kBertBase, {{"architectures", nullptr}})).output.kind, HeadKind::transformed);
  EXPECT_EQ(spec_of(edited(kGpt2, {{"architectures", {"GPT2Model"}}})).output.kind, HeadKind::none);
  EXPECT_EQ(spec_of(edited(kLlama2, {{"architectures", {"LlamaForSequenceClassification"}}})).output.kind,
            HeadKind::none);
  EXPECT_EQ(message(kBertBase, {{"architectures", "BertModel"}}),
            "\"architectures\" should be a list of names");
}

TEST(Bert, RefusesWhatWouldChangeTheComputation) {
  EXPECT_EQ(message(kBertBase, {{"position_embedding_type", "relative_key"}}),
            "\"position_embedding_type\": \"relative_key\" is not supported");
  EXPECT_EQ(message(kBertBase, {{"is_decoder", true}}), "\"is_decoder\": true is not supported");
  EXPECT_EQ(message(kBertBase, {{"add_cross_attention", true}}),
            "\"add_cross_attention\": true is not supported");
  EXPECT_EQ(message(kBertBase, {{"num_attention_heads", 7}}),
            "\"num_attention_heads\" is 7, which does not divide the width 768");
  const Error error = refusal(kBertBase, {{"hidden_act", "mish"}});
  EXPECT_EQ(error.message(), "the activation \"mish\" (hidden_act) is not supported");
  EXPECT_EQ(error.advice(),
            "gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, quick_gelu, relu, silu, tanh or linear");
}

TEST(Roberta, RefusesAPaddingIdThatLeavesNoPositions) {
  EXPECT_EQ(message(kRobertaBase, {{"pad_token_id", 513}}),
            "\"max_position_embeddings\" is 514, which leaves no position after \"pad_token_id\", 513");
  EXPECT_THROW(spec_of(edited(kRobertaBase, {{"pad_token_id", -1}})), Error);
}

TEST(Roberta, KeepsGeluInItsHead) {
  const ModelSpec s = spec_of(edited(kRobertaBase, {{"hidden_act", "relu"}}));
  EXPECT_EQ(s.blocks[0].mlp_branch()->mlp()->activation, Activation::relu);
  EXPECT_EQ(s.output.activation, Activation::gelu);
}

std::vector<int64_t> stored(const ModelSpec& spec) {
  std::vector<int64_t> out;
  for (const BlockSpec& b : spec.blocks) out.push_back(b.weights);
  return out;
}

TEST(Albert, GivesLayersToGroupsAndRunsEveryBlockOfOne) {
  const ModelSpec s = spec_of(
      edited(kAlbertBase, {{"num_hidden_layers", 4}, {"num_hidden_groups", 2}, {"inner_group_num", 2}}));
  EXPECT_EQ(stored(s), (std::vector<int64_t>{0, 1, 0, 1, 2, 3, 2, 3}));
  const auto& weights = found(R"({"model_type": "albert"})").weights(s);
  EXPECT_EQ(weights.at("blocks.2.attn.W_Q").tensor,
            "encoder.albert_layer_groups.1.albert_layers.0.attention.query.weight");
  EXPECT_EQ(weights.at("blocks.3.mlp.W_in").tensor,
            "encoder.albert_layer_groups.1.albert_layers.1.ffn.weight");
}

TEST(Albert, GivesUnevenGroupsAsTheLibraryDoes) {
  const ModelSpec s = spec_of(edited(kAlbertBase, {{"num_hidden_layers", 5}, {"num_hidden_groups", 3}}));
  EXPECT_EQ(stored(s), (std::vector<int64_t>{0, 0, 1, 1, 2}));
}

TEST(Albert, GivesEveryLayerItsGroupWhenThereAreAsMany) {
  const ModelSpec s = spec_of(edited(kAlbertBase, {{"num_hidden_layers", 3}, {"num_hidden_groups", 3}}));
  EXPECT_EQ(found(R"({"model_type": "albert"})").weights(s).at("blocks.2.ln1.w").tensor,
            "encoder.albert_layer_groups.2.albert_layers.0.attention.LayerNorm.weight");
  EXPECT_EQ(
      message(kAlbertBase, {{"num_hidden_layers", 3}, {"num_hidden_groups", 3}, {"inner_group_num", 2}}),
      "\"inner_group_num\": 2 is not supported with as many groups as layers");
  EXPECT_THROW(spec_of(edited(kAlbertBase, {{"num_hidden_groups", 13}})), Error);
}

TEST(Xlnet, RefusesWhatItDoesNotCompute) {
  EXPECT_EQ(message(kXlnetBase, {{"attn_type", "uni"}}), "\"attn_type\": \"uni\" is not supported");
  EXPECT_EQ(message(kXlnetBase, {{"bi_data", true}}), "\"bi_data\": true is not supported");
  EXPECT_EQ(message(kXlnetBase, {{"clamp_len", 100}}), "\"clamp_len\": 100 is not supported");
  EXPECT_EQ(message(kXlnetBase, {{"d_head", 32}}), "\"d_head\" is 32, but the width over the heads is 64");
}

TEST(Xlnet, ReadsTheOldNameOfTheVocabulary) {
  EXPECT_EQ(spec_of(edited(kXlnetBase, {{"vocab_size", nullptr}, {"n_token", 32000}})).embedding.vocabulary,
            32000);
}

TEST(Gpt2, ScalesItsScoresAsTheConfigSays) {
  EXPECT_EQ(spec_of(edited(kGpt2, {{"scale_attn_weights", false}})).blocks[0].attention().scale, 1.0);
  const ModelSpec s = spec_of(edited(kGpt2, {{"scale_attn_by_inverse_layer_idx", true}}));
  EXPECT_EQ(s.blocks[0].attention().scale, 0.125);
  EXPECT_EQ(s.blocks[3].attention().scale, 0.125 / 4);
}

TEST(Gpt2, TakesTheLibrarysOtherNamesToo) {
  const ModelSpec s = spec_of(edited(kGpt2, {{"n_embd", nullptr},
                                             {"hidden_size", 64},
                                             {"n_head", nullptr},
                                             {"num_attention_heads", 2},
                                             {"n_inner", 100}}));
  EXPECT_EQ(s.width, 64);
  EXPECT_EQ(s.blocks[0].attention().d_qk, 32);
  EXPECT_EQ(s.blocks[0].mlp_branch()->mlp()->width, 100);
}

TEST(Gpt2, FindsQueriesKeysAndValuesInOneTensor) {
  const auto weights = found(kGpt2.data()).weights(spec_from_config(kGpt2, "config.json"));
  const Source& k = weights.at("blocks.5.attn.W_K");
  EXPECT_EQ(k.tensor, "h.5.attn.c_attn.weight");
  EXPECT_TRUE(k.transpose);
  EXPECT_EQ(k.first_row, 768);
  EXPECT_EQ(k.stored_rows, 2304);
  EXPECT_EQ(weights.at("blocks.5.attn.b_V").first_row, 1536);
  EXPECT_FALSE(weights.at("blocks.5.attn.b_V").transpose);
}

TEST(Llama, TakesTheHeadWidthFromTheConfig) {
  const ModelSpec s = spec_of(edited(kLlama2, {{"head_dim", 64}}));
  EXPECT_EQ(s.blocks[0].attention().d_qk, 64);
  EXPECT_EQ(s.blocks[0].attention().scale, 0.125);
  EXPECT_EQ(parameters(s)[3].shape, (std::vector<int64_t>{2048, 4096}));
}

TEST(Llama, RefusesHeadsThatDoNotFit) {
  EXPECT_EQ(message(kLlama31, {{"num_key_value_heads", 5}}),
            "\"num_key_value_heads\" is 5, which does not divide the 32 heads");
  EXPECT_EQ(message(kLlama31, {{"num_attention_heads", 24}}),
            "\"num_attention_heads\" is 24, which does not divide the width 4096");
  EXPECT_EQ(message(kLlama31, {{"head_dim", 33}}),
            "the head width is 33, but rotary positions need an even one up to 16384");
  EXPECT_EQ(
      message(kLlama31, {{"hidden_size", 65536}, {"num_attention_heads", 1}, {"num_key_value_heads", 1}}),
      "the head width is 65536, but rotary positions need an even one up to 16384");
}

TEST(Llama, HasBiasesWhereTheConfigSaysSo) {
  const ModelSpec s = spec_of(edited(kLlama2, {{"attention_bias", true}, {"mlp_bias", true}}));
  EXPECT_TRUE(s.blocks[0].attention().bias);
  EXPECT_TRUE(s.blocks[0].attention().output_bias);
  EXPECT_TRUE(s.blocks[0].mlp_branch()->mlp()->bias);
}

std::vector<double> frequencies(const Json& changes) {
  return spec_of(edited(kLlama2, changes)).blocks[0].attention().rotary_frequencies;
}

TEST(Rope, ReadsBothStylesAlike) {
  const Json scaling{{"rope_type", "linear"}, {"factor", 2.5}};
  Json parameters = scaling;
  parameters["rope_theta"] = 5e5;
  const auto old_style = frequencies({{"rope_theta", 5e5}, {"rope_scaling", scaling}});
  EXPECT_EQ(old_style, frequencies({{"rope_parameters", parameters}}));
  EXPECT_EQ(old_style,
            frequencies({{"rope_theta", 5e5}, {"rope_scaling", {{"type", "linear"}, {"factor", 2.5}}}}));
  EXPECT_NEAR(old_style[0], 0.4, 1e-16);
  EXPECT_NEAR(old_style[32], 0.4 / std::sqrt(5e5), 1e-18);
}

// A stretch added by hand to a config of version 5, as cards of models say: versions differ in which one
// holds.
TEST(Rope, RefusesTwoSetsThatDiffer) {
  const Json stretched{{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 512}},
      plain{{"rope_type", "default"}, {"rope_theta", 1e4}};
  const Error error = refusal(kLlama2, {{"rope_parameters", plain}, {"rope_scaling", stretched}});
  EXPECT_EQ(error.message(), "\"rope_parameters\" and \"rope_scaling\" say different things of the rotation");
  Json both = stretched;
  both["rope_theta"] = 1e4;
  EXPECT_EQ(frequencies({{"rope_parameters", both}, {"rope_scaling", stretched}}),
            frequencies({{"rope_theta", 1e4}, {"rope_scaling", stretched}}));
  EXPECT_EQ(frequencies({{"rope_parameters", plain}, {"rope_scaling", nullptr}}),
            frequencies({{"rope_theta", 1e4}}));
}

TEST(Rope, TakesTheFirstContextFromTheConfigOrFromTheSet) {
  for (const Json& set :
       {Json{{"rope_type", "yarn"}, {"factor", 4.0}},
        Json{
            {"rope_type", "llama3"}, {"factor", 4.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}}}) {
    Json inside = set;
    inside["original_max_position_embeddings"] = 512;
    const auto there = frequencies({{"rope_scaling", inside}});
    EXPECT_EQ(frequencies({{"rope_scaling", set}, {"original_max_position_embeddings", 512}}), there);
    EXPECT_EQ(frequencies({{"rope_scaling", inside}, {"original_max_position_embeddings", 512}}), there);
    EXPECT_EQ(message(kLlama2, {{"rope_scaling", inside}, {"original_max_position_embeddings", 1024}}),
              "\"original_max_position_embeddings\" is 1024 here and 512 in config.json, rope_scaling");
  }
}

TEST(Rope, WhatPhi3OnceCalledYarnIsLongrope) {
  Json factors = Json::array();
  for (int i = 0; i < 64; ++i) factors.push_back(2.0);
  const auto of = [&](const char* type) {
    const AttentionSpec a =
        spec_of(edited(kLlama2, {{"rope_scaling",
                                  {{"type", type}, {"short_factor", factors}, {"long_factor", factors}}}}))
            .blocks[0]
            .attention();
    return std::tuple(a.rotary_frequencies, a.rotary_long, a.rotary_scale, a.rotary_context);
  };
  EXPECT_FALSE(std::get<1>(of("longrope")).empty());
  EXPECT_EQ(of("yarn"), of("longrope"));
}

TEST(Rope, RefusesScalingsItDoesNotComputeByName) {
  const Error error = refusal(kLlama2, {{"rope_scaling", {{"rope_type", "mrope"}, {"factor", 2.0}}}});
  EXPECT_EQ(error.message(), "the rotary scaling \"mrope\" is not supported");
  EXPECT_EQ(error.place(), "config.json, rope_scaling");
}

// A stretch of one is none; frequencies that turn often are kept, those that turn less than once are divided.
TEST(Rope, YarnKeepsShortWavesAndStretchesLongOnes) {
  const auto yarn = [](double factor) {
    return frequencies(
        {{"rope_scaling",
          {{"rope_type", "yarn"}, {"factor", factor}, {"original_max_position_embeddings", 4096}}}});
  };
  const std::vector<double> plain = frequencies({}), stretched = yarn(8);
  EXPECT_EQ(yarn(1), plain);
  EXPECT_EQ(stretched.front(), plain.front());
  EXPECT_NEAR(stretched.back(), plain.back() / 8, 1e-16);
}

TEST(Rope, LongTextsTurnByAListOfTheirOwn) {
  Json factors = Json::array(), longer = Json::array();
  for (int i = 0; i < 64; ++i) factors.push_back(1.0), longer.push_back(4.0);
  const AttentionSpec a = spec_of(edited(kLlama2, {{"rope_scaling",
                                                    {{"rope_type", "longrope"},
                                                     {"short_factor", factors},
                                                     {"long_factor", longer},
                                                     {"original_max_position_embeddings", 1024}}}}))
                              .blocks[0]
                              .attention();
  EXPECT_EQ(a.rotary_context, 1024);
  EXPECT_EQ(a.rotary_long[5], a.rotary_frequencies[5] / 4);
  EXPECT_NEAR(a.rotary_scale, std::sqrt(1 + std::log(4.0) / std::log(1024.0)), 1e-15);
  longer.erase(0);
  EXPECT_EQ(message(kLlama2, {{"rope_scaling",
                               {{"rope_type", "longrope"},
                                {"short_factor", factors},
                                {"long_factor", longer},
                                {"original_max_position_embeddings", 1024}}}}),
            "\"long_factor\" should list 64 numbers");
}

TEST(Rope, RefusesBrokenParameters) {
  EXPECT_EQ(message(kLlama2, {{"rope_scaling", {{"type", "linear"}}}}), "the key \"factor\" is missing");
  EXPECT_EQ(message(kLlama2, {{"rope_theta", 0}}),
            "\"rope_theta\" should be a number from 1 to 1000000000000000, but is 0");
  EXPECT_EQ(message(kLlama2, {{"rope_scaling", "linear"}}), "expected a JSON object, but got string");
  EXPECT_EQ(message(kLlama2, {{"partial_rotary_factor", 0.5}}),
            "\"partial_rotary_factor\" other than 1 is not supported");
  EXPECT_EQ(message(kLlama2, {{"rope_scaling",
                               {{"rope_type", "llama3"},
                                {"factor", 8},
                                {"low_freq_factor", 4},
                                {"high_freq_factor", 4},
                                {"original_max_position_embeddings", 8192}}}}),
            "\"low_freq_factor\" is 4, but must be below \"high_freq_factor\", 4");
}

std::vector<int64_t> windows(const ModelSpec& spec) {
  std::vector<int64_t> out;
  for (const BlockSpec& b : spec.blocks) out.push_back(b.attention().window);
  return out;
}

TEST(SlidingWindow, OfMistralMayBeOffOrLeftToTheDefault) {
  EXPECT_EQ(spec_of(edited(kMistral, {{"sliding_window", nullptr}})).blocks[0].attention().window, 0);
  Json config = parse_json(kMistral, "config.json");
  config.erase("sliding_window");
  EXPECT_EQ(spec_of(config).blocks[0].attention().window, 4096);
}

TEST(SlidingWindow, OfQwen2StartsAtMaxWindowLayers) {
  const Json on{{"num_hidden_layers", 3},
                {"use_sliding_window", true},
                {"max_window_layers", 2},
                {"sliding_window", 8}};
  EXPECT_EQ(windows(spec_of(edited(kQwen2, on))), (std::vector<int64_t>{0, 0, 8}));
}

TEST(SlidingWindow, FollowsLayerTypesWhereTheyAreGiven) {
  Json on{{"num_hidden_layers", 2},
          {"use_sliding_window", true},
          {"sliding_window", 8},
          {"layer_types", {"sliding_attention", "full_attention"}}};
  EXPECT_EQ(windows(spec_of(edited(kQwen2, on))), (std::vector<int64_t>{8, 0}));
  on["layer_types"] = {"full_attention"};
  EXPECT_EQ(message(kQwen2, on), "\"layer_types\" should list 2 names");
  on["layer_types"] = {"full_attention", "linear_attention"};
  EXPECT_EQ(message(kQwen2, on), "\"layer_types\" holds \"linear_attention\", which is not supported");
}

TEST(Vit, TakesSquaresOnly) {
  EXPECT_EQ(spec_of(edited(kVitBase, {{"image_size", {224, 224}}})).embedding.positions, 197);
  EXPECT_EQ(message(kVitBase, {{"image_size", {224, 112}}}),
            "\"image_size\": [224,112] (not a square) is not supported");
  EXPECT_EQ(message(kVitBase, {{"patch_size", {16}}}),
            "\"patch_size\": [16] (not a square) is not supported");
  EXPECT_EQ(message(kVitBase, {{"patch_size", 225}}),
            "\"patch_size\" should be a whole number from 1 to 224, but is 225");
  EXPECT_THROW(spec_of(edited(kVitBase, {{"image_size", {"a", "a"}}})), Error);
}

TEST(Vit, MayLackBiasesOnQkv) {
  const ModelSpec s = spec_of(edited(kVitBase, {{"qkv_bias", false}}));
  EXPECT_FALSE(s.blocks[0].attention().bias);
  EXPECT_TRUE(s.blocks[0].attention().output_bias);
}

TEST(Limits, KeepAnAbsurdConfigFromCostingMemory) {  // the largest one allowed is still described at once
  const ModelSpec s = spec_of(edited(kLlama2, {{"hidden_size", 1 << 20},
                                               {"num_hidden_layers", 4096},
                                               {"num_attention_heads", 64},
                                               {"num_key_value_heads", 64},
                                               {"vocab_size", 1 << 24},
                                               {"intermediate_size", 1 << 22}}));
  EXPECT_EQ(s.depth(), 4096);
  int64_t n = 0;
  for (const Parameter& p : parameters(s)) n += element_count(p);
  EXPECT_GT(n, 0);
}

}  // namespace
}  // namespace rankscope
