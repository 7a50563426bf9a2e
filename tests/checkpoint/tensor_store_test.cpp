#include "base/test_support.h"
#include "checkpoint/safetensors.h"

namespace rankscope {
namespace {

using test::error_of;
using test::put;
using test::TempFolder;

constexpr std::byte kZero[4] = {};

void write_one(const std::filesystem::path& path, const std::string& name) {
  write_safetensors(path, {{name, StoredType::u8, {4}, kZero}});
}

Error refusal(const TempFolder& folder) {
  return error_of([&] { TensorStore{folder.path()}; });
}

void put_index(const TempFolder& folder, const std::string& map) {
  put(folder / "model.safetensors.index.json",
      R"({"metadata": {"total_size": 8}, "weight_map": )" + map + "}");
}

TEST(TensorStore, ReadsOneFile) {
  const TempFolder folder;
  write_one(folder / "model.safetensors", "a");
  const TensorStore store(folder.path());
  ASSERT_NE(store.find("a"), nullptr);
  EXPECT_EQ(store.find("a")->entry->elements(), 4);
  EXPECT_EQ(store.find("b"), nullptr);
}

TEST(TensorStore, ReadsTheShardsAnIndexNames) {
  const TempFolder folder;
  write_one(folder / "y.safetensors", "a");
  write_one(folder / "x.safetensors", "b");
  put_index(folder, R"({"a": "y.safetensors", "b": "x.safetensors"})");
  const TensorStore store(folder.path());
  ASSERT_EQ(store.files().size(), 2u);
  EXPECT_EQ(store.files()[0]->path().filename(), "x.safetensors");
  EXPECT_EQ(store.find("a")->file, store.files()[1].get());
  EXPECT_EQ(store.find("b")->file, store.files()[0].get());
}

TEST(TensorStore, PrefersAWholeFileToAnIndex) {
  const TempFolder folder;
  write_one(folder / "model.safetensors", "a");
  put_index(folder, R"({"b": "missing.safetensors"})");
  EXPECT_NE(TensorStore(folder.path()).find("a"), nullptr);
}

TEST(TensorStore, TakesTheOnlyFileWhateverItsName) {
  const TempFolder folder;
  write_one(folder / "model.fp16.safetensors", "a");
  write_one(folder / "adapter_model.safetensors", "b");
  put(folder / "pytorch_model.bin", "");
  const TensorStore store(folder.path());
  EXPECT_NE(store.find("a"), nullptr);
  EXPECT_EQ(store.find("b"), nullptr);
}

TEST(TensorStore, DoesNotGuessBetweenFiles) {
  const TempFolder folder;
  write_one(folder / "model.fp16.safetensors", "a");
  write_one(folder / "model.bf16.safetensors", "a");
  const Error error = refusal(folder);
  EXPECT_EQ(
      error.message(),
      "there is no model.safetensors, and which of the 2 other .safetensors files is the model is not clear");
  EXPECT_EQ(error.advice(), "call it model.safetensors, or add model.safetensors.index.json");
}

TEST(TensorStore, AnAdapterAloneIsNoModel) {
  const TempFolder folder;
  write_one(folder / "adapter_model.safetensors", "a");
  EXPECT_EQ(refusal(folder).message(), "there is no model.safetensors and no model.safetensors.index.json");
}

TEST(TensorStore, RefusesAFolderWithoutWeights) {
  const TempFolder folder;
  EXPECT_EQ(refusal(folder).message(), "there is no model.safetensors and no model.safetensors.index.json");
}

TEST(TensorStore, NamesTheConversionOfBinFiles) {
  const TempFolder folder;
  put(folder / "pytorch_model.bin", "x");
  const Error error = refusal(folder);
  EXPECT_EQ(error.message(), "the weights are in the .bin format, which can run code when it is read");
  const std::string at = folder.path().string();  // where tokenizer and config stay beside the new file
  EXPECT_EQ(error.advice(),
            "python -c \"import glob, torch, safetensors.torch as s; w = {}; [w.update(torch.load(f, "
            "weights_only=True)) for f in glob.glob('" +
                at + "/pytorch_model*.bin')]; s.save_file({k: v.clone() for k, v in w.items()}, '" + at +
                "/model.safetensors')\"");
}

TEST(TensorStore, NamesTheShardThatIsMissing) {
  const TempFolder folder;
  put_index(folder, R"({"a": "x.safetensors"})");
  const Error error = refusal(folder);
  EXPECT_EQ(error.message(), "the file x.safetensors is missing");
  EXPECT_EQ(error.place(), (folder / "model.safetensors.index.json").string() + ", tensor \"a\"");
}

TEST(TensorStore, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "..\\\\x.safetensors",
                           "", "x.bin", "a\\u0000.safetensors"}) {
    const TempFolder folder;
    put_index(folder, std::string(R"({"a": ")") + name + "\"}");
    EXPECT_TRUE(refusal(folder).message().ends_with("is not the name of a .safetensors file in this folder"))
        << name;
  }
}

TEST(TensorStore, CatchesAnIndexThatLies) {
  const TempFolder folder;
  write_one(folder / "x.safetensors", "a");
  put_index(folder, R"({"b": "x.safetensors"})");
  const Error error = refusal(folder);
  EXPECT_EQ(error.message(), "the index says it is in x.safetensors, but that file does not hold it");
  EXPECT_EQ(error.place(), (folder / "model.safetensors.index.json").string() + ", tensor \"b\"");
}

TEST(TensorStore, RefusesAnIndexOfTheWrongForm) {
  const TempFolder folder;
  const auto message = [&](const std::string& text) {
    put(folder / "model.safetensors.index.json", text);
    return refusal(folder).message();
  };
  EXPECT_EQ(message("[]"), "expected a JSON object, but got array");
  EXPECT_EQ(message("{}"), "the key \"weight_map\" is missing");
  EXPECT_EQ(message(R"({"weight_map": []})"), "expected a JSON object, but got array");
  EXPECT_EQ(message(R"({"weight_map": {"a": 3}})"), "expected a file name, but got number");
  EXPECT_EQ(message("{"), "this is not valid JSON");
}

TEST(TensorStore, NamesTheBrokenShard) {
  const TempFolder folder;
  put(folder / "x.safetensors", "junk");
  put_index(folder, R"({"a": "x.safetensors"})");
  EXPECT_EQ(refusal(folder).place(), (folder / "x.safetensors").string());
}

}  // namespace
}  // namespace rankscope
