// Weights that were read ahead are the weights.
#include "checkpoint/staged.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/load.h"
#include "checkpoint/staging.h"
#include "support/source_tree.h"
#include "support/temporary_folder.h"

namespace rankscope {
namespace {

std::unique_ptr<WeightSource> staged(const Checkpoint& checkpoint, const std::string& dtype,
                                     int64_t most_ahead = int64_t{1} << 40) {
  return staged_source(checkpoint, dtype, "cpu", checkpoint_source(checkpoint, dtype, "cpu"), most_ahead);
}

std::vector<std::string> parts_of(const ModelSpec& spec) {
  std::vector<std::string> out{"embed"};
  for (int64_t l = 0; l < spec.stored_blocks; ++l) out.push_back(fmt::format("blocks.{}", l));
  if (spec.final_norm.there()) out.emplace_back("ln_final");
  if (spec.output.kind != HeadKind::none) out.emplace_back("unembed");
  return out;
}

void expect_same(const Weights& a, const Weights& b, const ModelSpec& spec, const std::string& part) {
  for (const Parameter& p : parameters_of(spec, part)) {
    if (is_vocabulary_table(p.name)) continue;
    const std::string name = p.name.substr(part.size() + 1);
    EXPECT_TRUE(at::equal(a.get(name), b.get(name))) << p.name;
    EXPECT_EQ(a.get(name).scalar_type(), b.get(name).scalar_type()) << p.name;
  }
}

// Fused and transposed tensors, half precision, vectors stored as matrices.
TEST(Staged, GivesTheWeightsThatAreReadAtOnce) {
  for (const char* model : {"bert", "gpt2", "gpt2-fp16", "llama", "xlnet", "vit", "albert-groups"})
    for (const char* dtype : {"float32", "float64"}) {
      const Checkpoint checkpoint(test::fixtures() / "models" / model);
      const auto plain = checkpoint_source(checkpoint, dtype, "cpu");
      const auto ahead = staged(checkpoint, dtype);
      const std::vector<std::string> parts = parts_of(checkpoint.spec());
      for (size_t i = 0; i < parts.size(); ++i) {
        const Weights now = ahead->load(parts[i]);
        if (i + 1 < parts.size()) ahead->expect(parts[i + 1]);
        expect_same(now, plain->load(parts[i]), checkpoint.spec(), parts[i]);
      }
    }
}

TEST(Staged, ReadsAnotherPartThanWasExpected) {
  const Checkpoint checkpoint(test::fixtures() / "models" / "bert");
  const auto plain = checkpoint_source(checkpoint, "float32", "cpu");
  for (const int64_t most : {int64_t{1} << 40, int64_t{1}}) {  // with and without anything read ahead
    const auto ahead = staged(checkpoint, "float32", most);
    ahead->expect("blocks.1");
    ahead->expect("blocks.2");  // one at a time: the first stays
    expect_same(ahead->load("blocks.0"), plain->load("blocks.0"), checkpoint.spec(), "blocks.0");
    expect_same(ahead->load("blocks.1"), plain->load("blocks.1"), checkpoint.spec(), "blocks.1");
    ahead->expect("blocks.2");  // and never asked for
  }
}

TEST(Staged, NamesTheTensorThatIsNotFinite) {
  const TemporaryFolder folder;
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(test::fixtures() / "models" / "bert" / file, folder.path() / file);
  std::string bytes = read_file(folder.path() / "model.safetensors");
  const std::string tensor = "bert.encoder.layer.1.attention.self.value.weight";
  {
    const Checkpoint checkpoint(folder.path());
    const TensorEntry& entry = *checkpoint.store().find(tensor)->entry;
    const float bad = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(bytes.data() + entry.begin + 8, &bad, sizeof bad);
  }
  write_file(folder.path() / "model.safetensors", bytes);
  const Checkpoint checkpoint(folder.path());
  const auto source = staged(checkpoint, "float32");
  static_cast<void>(source->load("blocks.0"));
  source->expect("blocks.1");  // says nothing before somebody asks for it
  try {
    static_cast<void>(source->load("blocks.1"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "the weights hold NaN or Inf");
    EXPECT_NE(e.place().find(tensor), std::string::npos) << e.place();
  }
}

TEST(Staged, GivesADeviceTheSameWeights) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  for (const char* model : {"gpt2-fp16", "llama", "xlnet"}) {
    const Checkpoint checkpoint(test::fixtures() / "models" / model);
    const auto plain = checkpoint_source(checkpoint, "float32", "cpu");
    const auto ahead = checkpoint_source(checkpoint, "float32", "cuda");
    const std::vector<std::string> parts = parts_of(checkpoint.spec());
    for (size_t i = 0; i < parts.size(); ++i) {
      const Weights there = ahead->load(parts[i]);
      if (i + 1 < parts.size()) ahead->expect(parts[i + 1]);
      Weights here;
      for (const Parameter& p : parameters_of(checkpoint.spec(), parts[i]))
        if (!is_vocabulary_table(p.name)) {
          const std::string name = p.name.substr(parts[i].size() + 1);
          EXPECT_TRUE(there.get(name).is_cuda());
          here.set(name, there.get(name).cpu());
        }
      expect_same(here, plain->load(parts[i]), checkpoint.spec(), parts[i]);
    }
  }
}

TEST(Staging, CopiesWhatIsLargerThanItsBuffers) {
  at::manual_seed(3);
  for (const int64_t size : {1, 99, 100, 101, 1234}) {
    const at::Tensor from = at::randint(0, 256, {size}, at::kByte);
    at::Tensor to = at::zeros({size}, at::kByte);
    Staging staging(false, 100);
    staging.copy({reinterpret_cast<const std::byte*>(from.data_ptr<uint8_t>()), static_cast<size_t>(size)},
                 to);
    EXPECT_TRUE(at::equal(from, to)) << size;
  }
}

TEST(Staging, SeveralThreadsCopyEveryByte) {
  const size_t size = (size_t{21} << 20) + 5;
  std::vector<std::byte> from(size), to(size);
  for (size_t i = 0; i < size; ++i) from[i] = static_cast<std::byte>(i * 31 + i / 251);
  copy_in_parallel(to.data(), from);
  EXPECT_EQ(from, to);
}

}  // namespace
}  // namespace rankscope
