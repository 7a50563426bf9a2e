#include "checkpoint/what_it_is.h"

#include <gtest/gtest.h>

#include "base/test_support.h"

namespace rankscope::test {
namespace {

namespace fs = std::filesystem;

TEST(WhatItIs, ANameOnAHubIsAnsweredWithItsDownload) {
  const Error hub = not_a_checkpoint("sentence-transformers/all-MiniLM-L6-v2");
  EXPECT_EQ(hub.message(), "there is no such folder");
  EXPECT_NE(
      hub.advice().find("hf download sentence-transformers/all-MiniLM-L6-v2 --local-dir all-MiniLM-L6-v2"),
      std::string::npos)
      << hub.advice();
  EXPECT_NE(not_a_checkpoint("bert-base-uncased").advice().find("hf download bert-base-uncased"),
            std::string::npos);
  // Paths, and what no hub has for a name.
  for (const char* path :
       {"/nowhere/at/all", "./model", "../model", "a/b/c", "folder/", "two words", "$(rm)"})
    EXPECT_EQ(not_a_checkpoint(path).advice(), "check the path") << path;
}

TEST(WhatItIs, FilesAreNamedForWhatTheyAre) {
  const TempFolder folder;
  put(folder / "x.gguf", "GGUF");
  put(folder / "renamed.model", "GGUF....");
  put(folder / "model.safetensors", "");
  put(folder / "pytorch_model.bin", "");
  put(folder / "notes.txt", "");
  const auto says = [&](const char* name) { return not_a_checkpoint(folder / name).message(); };
  EXPECT_EQ(says("x.gguf").find("this is a GGUF file"), 0u);
  EXPECT_EQ(says("renamed.model").find("this is a GGUF file"), 0u);
  EXPECT_EQ(says("model.safetensors"),
            "these are the weights of a model, and its config.json is needed, too");
  EXPECT_EQ(says("pytorch_model.bin"), "this is a PyTorch file, which can run code when it is read");
  EXPECT_EQ(says("notes.txt"), "expected the folder of a checkpoint, but got a file");
}

TEST(WhatItIs, FoldersAreNamedForWhatTheyHold) {
  const TempFolder folder;
  for (const char* name : {"empty", "gguf", "weights", "flax", "several/a", "several/b"})
    fs::create_directories(folder / name);
  put(folder / "gguf/x.gguf", "");
  put(folder / "weights/model.safetensors", "");
  put(folder / "flax/flax_model.msgpack", "");
  put(folder / "several/a/config.json", "{}");
  put(folder / "several/b/config.json", "{}");
  const auto of = [&](const char* name) { return not_a_checkpoint(folder / name); };
  EXPECT_EQ(of("empty").message(), "this folder is empty");
  EXPECT_EQ(of("gguf").message().find("this is a GGUF file"), 0u);
  EXPECT_EQ(of("weights").message(), "there is no config.json");
  EXPECT_EQ(of("weights").advice(), "the weights are there: add the config.json they were published with");
  EXPECT_NE(of("flax").advice().find("from_flax=True"), std::string::npos);
  EXPECT_EQ(of("several").message(), "this folder holds 2 models, and it is not clear which one is meant");
  EXPECT_NE(of("several").advice().find((folder / "several/a").string()), std::string::npos);
}

}  // namespace
}  // namespace rankscope::test
