#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "base/test_support.h"
#include "checkpoint/folder.h"

namespace rankscope {
namespace {

using namespace test;

constexpr const char* kSmallBert =
    R"({"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 6,
  "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 8, "max_position_embeddings": 5,
  "vocab_size": 7})";

// A folder as it should be, for a test to break.
class Folder {
 public:
  explicit Folder(const std::string& config, const std::string& prefix) : prefix_(prefix) {
    put(folder_ / "config.json", config);
    const Json json = parse_json(config, "config.json");
    const JsonObject object(json, "config.json");
    spec_ = architecture_for(object).spec(object);
    tensors = tensors_for(architecture_for(object), spec_, prefix);
  }
  std::filesystem::path path() const { return folder_.path(); }
  Checkpoint open() {
    write_tensors(folder_ / "model.safetensors", tensors);
    return Checkpoint(folder_.path());
  }
  Error refusal() {
    return error_of([&] { open(); });
  }
  void rename(const std::string& from, const std::string& to) {
    auto node = tensors.extract(from);
    ASSERT_FALSE(node.empty()) << from;
    node.key() = to;
    tensors.insert(std::move(node));
  }
  void rename_all(const std::string& from, const std::string& to) {
    std::map<std::string, StoredTensor> renamed;
    for (auto& [name, tensor] : tensors)
      renamed[name.starts_with(from) ? to + name.substr(from.size()) : name] = std::move(tensor);
    tensors = std::move(renamed);
  }
  std::map<std::string, StoredTensor> tensors;

 private:
  TempFolder folder_;
  std::string prefix_;
  ModelSpec spec_;
};

// The parameter's numbers, taken as Checkpoint::Place says.
std::vector<float> numbers(const Checkpoint& checkpoint, const Parameter& p) {
  const Checkpoint::Place& place = checkpoint.place(p.name);
  std::vector<float> stored(static_cast<size_t>(place.entry->elements()));
  std::memcpy(stored.data(), place.file->bytes(*place.entry).data(), stored.size() * sizeof(float));
  const int64_t rows = p.shape[0], columns = p.shape.size() == 2 ? p.shape[1] : 1;
  std::vector<float> out;
  for (int64_t i = place.source.first_row; i < place.source.first_row + rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      out.push_back(stored.at(
          static_cast<size_t>(place.source.transpose ? j * place.columns + i : i * place.columns + j)));
  return out;
}

TEST(Checkpoint, OpensAFolderWithItsHead) {
  Folder folder(kSmallBert, "bert.");
  const Checkpoint checkpoint = folder.open();
  EXPECT_EQ(checkpoint.spec().output.kind, HeadKind::transformed);
  EXPECT_TRUE(checkpoint.unused().empty());
  EXPECT_TRUE(checkpoint.missing_head().empty());
  EXPECT_EQ(checkpoint.place("unembed.W_U").tensor, "bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(checkpoint.architecture().name, "bert");
  EXPECT_EQ(error_of([&] { checkpoint.place("blocks.9.attn.W_Q"); }).message(),
            "the model has no parameter \"blocks.9.attn.W_Q\"");
}

TEST(Checkpoint, ReadsRowsOfFusedAndTransposedTensors) {
  Folder folder(
      R"({"model_type": "gpt2", "n_embd": 4, "n_head": 2, "n_layer": 1, "n_positions": 3, "vocab_size": 5})",
      "transformer.");
  const Checkpoint checkpoint = folder.open();
  const StoredTensor& fused = folder.tensors.at("transformer.h.0.attn.c_attn.weight");
  ASSERT_EQ(fused.shape, (std::vector<int64_t>{4, 12}));
  for (const Parameter& p : parameters(checkpoint.spec())) {
    if (p.name != "blocks.0.attn.W_K") continue;
    const std::vector<float> k = numbers(checkpoint, p);
    for (size_t row = 0; row < 4; ++row)
      for (size_t column = 0; column < 4; ++column)
        EXPECT_EQ(k[row * 4 + column], fused.values[column * 12 + 4 + row]);
  }
}

TEST(Checkpoint, ReadsTensorsWithMoreDimensions) {
  Folder folder(
      R"({"model_type": "xlnet", "d_model": 6, "n_head": 2, "n_layer": 1, "d_inner": 4, "vocab_size": 5})",
      "transformer.");
  const Checkpoint checkpoint = folder.open();
  const auto q = checkpoint.place("blocks.0.attn.W_Q"), o = checkpoint.place("blocks.0.attn.W_O"),
             bias = checkpoint.place("blocks.0.attn.r_w_bias");
  EXPECT_EQ(std::pair(q.rows, q.columns), std::pair(int64_t{6}, int64_t{6}));
  EXPECT_TRUE(q.source.transpose);
  EXPECT_FALSE(o.source.transpose);
  EXPECT_EQ(std::pair(bias.rows, bias.columns), std::pair(int64_t{6}, int64_t{1}));

  EXPECT_EQ(checkpoint.place("blocks.0.attn.seg_embed").columns, 6);

  Folder images(R"({"model_type": "vit", "hidden_size": 4, "num_attention_heads": 2, "num_hidden_layers": 1,
    "intermediate_size": 4, "image_size": 6, "patch_size": 2, "num_channels": 3})",
                "vit.");
  const Checkpoint vit = images.open();
  EXPECT_EQ(std::pair(vit.place("embed.W_patch").rows, vit.place("embed.W_patch").columns),
            std::pair(int64_t{4}, int64_t{12}));
  EXPECT_EQ(std::pair(vit.place("embed.W_pos").rows, vit.place("embed.W_pos").columns),
            std::pair(int64_t{10}, int64_t{4}));
  EXPECT_EQ(std::pair(vit.place("embed.cls").rows, vit.place("embed.cls").columns),
            std::pair(int64_t{4}, int64_t{1}));
}

TEST(Checkpoint, FindsNamesWithoutPrefixAndWithTwo) {
  Folder plain(kSmallBert, "");
  EXPECT_TRUE(plain.open().unused().empty());

  Folder wrapped(
      R"({"model_type": "llama", "hidden_size": 4, "num_attention_heads": 2, "num_hidden_layers": 1,
    "intermediate_size": 4, "vocab_size": 5})",
      "model.");
  wrapped.rename_all("model.", "model.model.");
  wrapped.rename("lm_head.weight", "model.lm_head.weight");
  const Checkpoint checkpoint = wrapped.open();
  EXPECT_EQ(checkpoint.spec().output.kind, HeadKind::linear);
  EXPECT_EQ(checkpoint.place("unembed.W_U").tensor, "model.lm_head.weight");
  EXPECT_TRUE(checkpoint.unused().empty());
}

TEST(Checkpoint, RefusesTwoModelsInOneFolder) {
  Folder folder(kSmallBert, "question.");
  folder.tensors["answer.embeddings.word_embeddings.weight"] =
      folder.tensors.at("question.embeddings.word_embeddings.weight");
  EXPECT_EQ(folder.refusal().message(),
            "2 tensors end with embeddings.word_embeddings.weight, and it is not clear which model is meant");
}

TEST(Checkpoint, AcceptsGammaAndBeta) {
  Folder folder(kSmallBert, "bert.");
  folder.rename("bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma");
  folder.rename("bert.embeddings.LayerNorm.bias", "bert.embeddings.LayerNorm.beta");
  const Checkpoint checkpoint = folder.open();
  EXPECT_EQ(checkpoint.place("embed.ln.w").tensor, "bert.embeddings.LayerNorm.gamma");
  EXPECT_TRUE(checkpoint.unused().empty());
}

TEST(Checkpoint, FindsTheHeadsBiasUnderItsOtherName) {
  Folder folder(kSmallBert, "bert.");
  EXPECT_EQ(folder.open().place("unembed.b_U").tensor, "cls.predictions.decoder.bias");
  folder.rename("cls.predictions.decoder.bias", "cls.predictions.bias");
  EXPECT_EQ(folder.open().place("unembed.b_U").tensor, "cls.predictions.bias");
}

// Untied, the library adds the bias of its map to the vocabulary and leaves the other one alone.
TEST(Checkpoint, OfTwoBiasesOfTheHeadTheMapsOwnIsTaken) {
  Folder folder(kSmallBert, "bert.");
  folder.tensors["cls.predictions.bias"] = folder.tensors.at("cls.predictions.decoder.bias");
  const Checkpoint checkpoint = folder.open();
  EXPECT_EQ(checkpoint.place("unembed.b_U").tensor, "cls.predictions.decoder.bias");
  EXPECT_EQ(checkpoint.unused(), (std::vector<std::string>{"cls.predictions.bias"}));
}

TEST(Checkpoint, DropsAHeadWhoseTensorsAreNotThere) {
  Folder folder(kSmallBert, "bert.");
  folder.tensors.erase("cls.predictions.decoder.bias");
  folder.tensors.erase("cls.predictions.transform.dense.weight");
  const Checkpoint checkpoint = folder.open();
  EXPECT_EQ(checkpoint.spec().output.kind, HeadKind::none);
  EXPECT_EQ(checkpoint.missing_head(), (std::vector<std::string>{"cls.predictions.transform.dense.weight",
                                                                 "cls.predictions.decoder.bias"}));
  EXPECT_EQ(checkpoint.unused(), (std::vector<std::string>{"cls.predictions.transform.LayerNorm.bias",
                                                           "cls.predictions.transform.LayerNorm.weight",
                                                           "cls.predictions.transform.dense.bias"}));
}

// A fine-tune whose config lost the word: what was trained is in the files.
TEST(Checkpoint, ReadsAStoredHeadThatIsNotTheEmbeddingItShouldBeTiedTo) {
  Folder folder(kSmallBert, "bert.");
  const char* head = "cls.predictions.decoder.weight";
  folder.tensors[head] = folder.tensors.at("bert.embeddings.word_embeddings.weight");
  EXPECT_TRUE(folder.open().spec().output.tied);
  EXPECT_EQ(folder.open().untied(), "");
  folder.tensors.at(head).values.back() += 1;  // the last row is looked at where there are few
  const Checkpoint checkpoint = folder.open();
  EXPECT_FALSE(checkpoint.spec().output.tied);
  EXPECT_EQ(checkpoint.untied(), head);
  EXPECT_EQ(checkpoint.place("unembed.W_U").tensor, head);
}

TEST(Checkpoint, ListsWhatNoParameterUses) {
  Folder folder(kSmallBert, "bert.");
  folder.tensors["bert.pooler.dense.weight"] = {StoredType::f32, {1}, {0}};
  folder.tensors["bert.embeddings.position_ids"] = {StoredType::i16, {1}, {0}};
  EXPECT_EQ(folder.open().unused(),
            (std::vector<std::string>{"bert.embeddings.position_ids", "bert.pooler.dense.weight"}));
}

TEST(Checkpoint, ListsWhatNoParameterUsesInsideOfLayersThatAreRead) {
  Folder folder(kSmallBert, "bert.");
  const auto add = [&](const char* name, std::vector<int64_t> shape) {
    const auto n =
        static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies()));
    folder.tensors[name] = {StoredType::f32, std::move(shape), std::vector<float>(n)};
  };
  add("bert.pooler.dense.weight", {1});
  add("bert.encoder.layer.9.attention.self.query.lora_A.weight", {1, 6});  // behind: told of as a layer
  add("bert.encoder.layer.0.attn.bias", {1, 1, 2, 2});
  add("bert.encoder.layer.0.attention.masked_bias", {1});
  add("bert.encoder.layer.0.attention.rotary_emb.inv_freq", {3});
  EXPECT_TRUE(folder.open().unused_inside().empty());
  add("bert.encoder.layer.0.attn.bias", {2});  // of one dimension: no mask
  add("bert.encoder.layer.1.attention.self.query.lora_A.weight", {1, 6});
  EXPECT_EQ(folder.open().unused_inside(),
            (std::vector<std::string>{"bert.encoder.layer.0.attn.bias",
                                      "bert.encoder.layer.1.attention.self.query.lora_A.weight"}));
}

TEST(Checkpoint, NamesTheTensorWithTheWrongShape) {
  Folder folder(kSmallBert, "bert.");
  folder.tensors["bert.encoder.layer.1.output.dense.weight"] = {
      StoredType::f32, {8, 6}, std::vector<float>(48)};
  const Error error = folder.refusal();
  EXPECT_EQ(error.message(), "expected [6, 8], but got [8, 6]");
  EXPECT_EQ(error.place(), (folder.path() / "model.safetensors").string() +
                               ", tensor \"bert.encoder.layer.1.output.dense.weight\"");
}

TEST(Checkpoint, ReportsMissingTensorsTogether) {
  Folder folder(kSmallBert, "bert.");
  folder.tensors.erase("bert.encoder.layer.1.output.dense.weight");
  EXPECT_EQ(folder.refusal().message(), "1 tensor is missing: bert.encoder.layer.1.output.dense.weight");
  std::erase_if(folder.tensors,
                [](const auto& item) { return item.first.find("layer.1.") != std::string::npos; });
  EXPECT_EQ(
      folder.refusal().message(),
      "16 tensors are missing: bert.encoder.layer.1.attention.output.LayerNorm.weight, "
      "bert.encoder.layer.1.attention.output.LayerNorm.bias, "
      "bert.encoder.layer.1.attention.self.query.weight, bert.encoder.layer.1.attention.self.key.weight, "
      "bert.encoder.layer.1.attention.self.value.weight and 11 more");
}

TEST(Checkpoint, RefusesWeightsOfAnotherArchitecture) {
  Folder folder(kSmallBert, "bert.");
  folder.tensors.erase("bert.embeddings.word_embeddings.weight");
  const Error error = folder.refusal();
  EXPECT_EQ(error.message(), "no tensor is named embeddings.word_embeddings.weight or ends with it");
  EXPECT_EQ(error.advice(), "check that the weights are those of a bert model");
}

TEST(Checkpoint, RefusesQuantizedWeights) {
  Folder folder(kSmallBert, "bert.");
  folder.tensors["bert.encoder.layer.0.output.dense.weight"] = {
      StoredType::i8, {6, 8}, std::vector<float>(48)};
  EXPECT_EQ(folder.refusal().message(), "expected floating-point numbers, but got I8");
  Json config = parse_json(kSmallBert, "config.json");
  config["quantization_config"] = {{"quant_method", "gptq"}};
  put(folder.path() / "config.json", config.dump());
  EXPECT_EQ(folder.refusal().message(),
            "the weights are quantized (\"quantization_config\"), which is not supported");
}

TEST(Checkpoint, SaysWhatIsWrongWithAFolder) {
  EXPECT_EQ(error_of([] { Checkpoint("/nowhere/at-all"); }).message(), "there is no such folder");
  const TempFolder folder;
  EXPECT_EQ(error_of([&] { Checkpoint{folder.path()}; }).message(), "this folder is empty");
  put(folder / "notes.txt", "");
  EXPECT_EQ(error_of([&] { Checkpoint{folder.path()}; }).message(), "there is no config.json");
  put(folder / "adapter_config.json", "{}");
  const Error adapter = error_of([&] { Checkpoint{folder.path()}; });
  EXPECT_EQ(adapter.message(), "this is an adapter: it holds changes to a model, not a model");
  EXPECT_NE(adapter.advice().find("merge_and_unload()"), std::string::npos);
  put(folder / "config.json", kSmallBert);
  put(folder / "pytorch_model.bin", "");
  const std::string conversion = error_of([&] { Checkpoint{folder.path() / ""}; }).advice();
  EXPECT_NE(conversion.find("s.save_file("), std::string::npos);
  EXPECT_EQ(conversion.find("//"), std::string::npos) << conversion;
  put(folder / "config.json", "{");
  EXPECT_EQ(error_of([&] { Checkpoint{folder.path()}; }).message(), "this is not valid JSON");
  EXPECT_EQ(error_of([&] { Checkpoint{folder / "config.json"}; }).message(),
            "expected the folder of a checkpoint, but got a file");
}

// ---- properties over random small configs
// -------------------------------------------------------------------------

TEST(Checkpoint, RoundTripsRandomSmallFolders) {
  std::mt19937 random(7);
  const auto from = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const std::pair<const char*, const char*> families[] = {
      {"bert", "bert."}, {"gpt2", "transformer."},      {"llama", "model."},   {"qwen2", "model."},
      {"roberta", ""},   {"distilbert", "distilbert."}, {"albert", "albert."}, {"xlnet", "transformer."}};
  for (int round = 0; round < 24; ++round) {
    const auto& [type, prefix] = families[static_cast<size_t>(round) % std::size(families)];
    const int64_t heads = from(1, 3), width = heads * 2 * from(1, 3), layers = from(1, 3), inner = from(1, 9);
    const Json config{{"model_type", type},
                      {"hidden_size", width},
                      {"num_attention_heads", heads},
                      {"num_hidden_layers", layers},
                      {"intermediate_size", inner},
                      {"d_inner", inner},
                      {"embedding_size", from(1, 5)},
                      {"max_position_embeddings", from(4, 9)},
                      {"vocab_size", from(3, 20)},
                      {"attention_bias", from(0, 1) == 1},
                      {"tie_word_embeddings", from(0, 1) == 1}};
    Folder folder(config.dump(), prefix);
    const Checkpoint checkpoint = folder.open();
    EXPECT_TRUE(checkpoint.unused().empty()) << config.dump();
    for (const Parameter& p : parameters(checkpoint.spec())) {
      const auto got = numbers(checkpoint, p);
      ASSERT_EQ(static_cast<int64_t>(got.size()), element_count(p));
      const StoredTensor& stored = folder.tensors.at(checkpoint.place(p.name).tensor);
      const std::set<float> whole(stored.values.begin(), stored.values.end()), mine(got.begin(), got.end());
      EXPECT_EQ(mine.size(), got.size()) << p.name;  // every stored number is different
      EXPECT_TRUE(std::includes(whole.begin(), whole.end(), mine.begin(), mine.end())) << p.name;
    }
  }
}

}  // namespace
}  // namespace rankscope
