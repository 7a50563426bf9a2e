// What is copied beside the weights of a model that anybody may have made.
#include "importance/side_files.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "importance/unfinished.h"
#include "support/temporary_folder.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

class Beside : public testing::Test {
 protected:
  TemporaryFolder folder;
  fs::path model = folder.path() / "model";

  void SetUp() override { fill(model); }
  static void fill(const fs::path& at) {
    fs::create_directories(at);
    for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) write_file(at / name, "");
  }
  static std::vector<std::string> names(const SideFiles& found) {
    std::vector<std::string> out;
    for (const SideFile& f : found.files) out.push_back(f.name);
    return out;
  }
  using Names = std::vector<std::string>;
};

TEST_F(Beside, AModelGoWhatItIsMadeOfAndTheWordsOfItsAuthors) {
  for (const char* name : {"vocab.txt", "chat_template.jinja", "LICENSE.md", "README.md", "pytorch_model.bin",
                           "model.safetensors.index.json", ".gitattributes"})
    write_file(model / name, "");
  fs::create_directory(model / "onnx");
  const SideFiles found = side_files(model);
  EXPECT_EQ(names(found), (Names{"LICENSE.md", "README.md", "chat_template.jinja", "tokenizer.json",
                                 "vocab.txt", "config.json"}));
  EXPECT_EQ(found.notes, Names{});
}

TEST_F(Beside, AModelOtherFilesStayAndAreNamed) {
  for (const char* name : {"a\033[2J", "b", "c", "d", "e", "f"}) write_file(model / name, "");
  const SideFiles found = side_files(model);
  EXPECT_EQ(names(found), (Names{"tokenizer.json", "config.json"}));
  EXPECT_EQ(found.notes, Names{"--write leaves out a\\x1b[2J, b, c, d and 2 more: only what belongs to a "
                               "model and its tokenizer is copied"});
}

TEST_F(Beside, ALinkIsFollowedWithinTheFolderAlone) {
  write_file(folder.path() / "secret", "mine");
  fs::create_symlink(folder.path() / "secret", model / "README.md");
  fs::create_symlink("../secret", model / "LICENSE");
  fs::create_symlink("nowhere", model / "vocab.txt");
  fs::create_symlink("tokenizer.json", model / "vocab.json");
  const SideFiles found = side_files(model);
  EXPECT_EQ(names(found), (Names{"tokenizer.json", "vocab.json", "config.json"}));
  EXPECT_EQ(found.notes, Names{"--write leaves out LICENSE, README.md, vocab.txt: links that lead out of the "
                               "model's folder are not followed"});
}

// As the library keeps what it fetched, and as somebody could make it look.
TEST_F(Beside, ASnapshotLinksLeadToTheBlobsOfItsCache) {
  const fs::path cache = folder.path() / "models--a--b", snapshot = cache / "snapshots" / "12ab";
  fs::create_directories(cache / "blobs");
  fs::create_directories(snapshot);
  for (const char* name : {"config.json", "tokenizer.json"}) {
    write_file(cache / "blobs" / name, name);
    fs::create_symlink(fs::path("../../blobs") / name, snapshot / name);
  }
  const SideFiles found = side_files(snapshot);
  EXPECT_EQ(names(found), (Names{"tokenizer.json", "config.json"}));
  EXPECT_EQ(read_file(found.files.front().from), "tokenizer.json");
  const fs::path below = snapshot / "0_Transformer";  // as sentence-transformers keep it
  fs::create_directory(below);
  for (const char* name : {"config.json", "tokenizer.json"})
    fs::create_symlink(fs::path("../../../blobs") / name, below / name);
  EXPECT_EQ(names(side_files(below)), (Names{"tokenizer.json", "config.json"}));

  fs::rename(cache / "blobs", folder.path() / "elsewhere");
  write_file(folder.path() / "elsewhere" / "README.md", "mine");
  fs::create_directory_symlink(folder.path() / "elsewhere", cache / "blobs");
  for (const char* name : {"config.json", "tokenizer.json"}) fs::remove(snapshot / name);
  fill(snapshot);
  fs::create_symlink("../../blobs/README.md", snapshot / "README.md");
  EXPECT_EQ(names(side_files(snapshot)), (Names{"tokenizer.json", "config.json"}));
}

TEST_F(Beside, AFileOfAnySizeIsNotCopied) {
  write_file(model / "README.md", "");
  fs::resize_file(model / "README.md", kLargestSideFile + 1);
  for (const char* name : {"LICENSE.1", "LICENSE.2", "LICENSE.3", "LICENSE.4"}) {
    write_file(model / name, "");
    fs::resize_file(model / name, kLargestSideFile);
  }
  write_file(model / "NOTICE", "one byte more than all of them may have");
  const SideFiles found = side_files(model);
  EXPECT_EQ(names(found),
            (Names{"LICENSE.1", "LICENSE.2", "LICENSE.3", "LICENSE.4", "tokenizer.json", "config.json"}));
  EXPECT_EQ(found.notes, Names{"--write leaves out NOTICE, README.md: files beside the weights are copied up "
                               "to 64 MiB, and 256 MiB together"});
}

TEST_F(Beside, AConfigFromElsewhereIsAnError) {
  fs::rename(model / "config.json", folder.path() / "config.json");
  fs::create_symlink("../config.json", model / "config.json");
  try {
    side_files(model);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "this is no file of the model's folder that could be copied");
    EXPECT_EQ(e.place(), (model / "config.json").string());
    EXPECT_EQ(e.advice(), "cp -rL " + model.string() + " COPY puts files in the place of links");
  }
}

TEST_F(Beside, AMarkOfAProcessThatIsGoneSaysThatTheFolderIsUnfinished) {
  EXPECT_FALSE(was_left_unfinished(model));
  EXPECT_FALSE(was_left_unfinished(folder.path() / "none"));
  write_file(model / "unfinished.partly", "");
  EXPECT_FALSE(was_left_unfinished(model));
  write_file(model / "unfinished.part999999999", "");
  EXPECT_TRUE(was_left_unfinished(model));
  write_file(model / "unfinished.part1", "");  // somebody is at work
  EXPECT_FALSE(was_left_unfinished(model));
}

}  // namespace
}  // namespace rankscope
