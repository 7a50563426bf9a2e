// Checkpoints from before optimizer moments were stored by parameter: written here in the order they had,
// name by name, and read by the trainer of today.
#include "train/old_layout.h"

#include <gtest/gtest.h>

#include <span>

#include "checkpoint/safetensors.h"
#include "studies/support/token_config.h"
#include "support/temporary_folder.h"
#include "train/train_support.h"

namespace rankscope {
namespace {

// A number of its own for every element of every parameter.
float number_of(const std::string& name, int64_t index, float salt) {
  float sum = salt;
  for (const char c : name) sum = sum * 1.0625f + static_cast<float>(c);
  return sum + static_cast<float>(index) * 0.5f;
}

struct OldFile {
  const TrialSpec& trial;
  std::vector<std::string> order;                   // of the flat buffers, by today's names
  std::map<std::string, std::string> renamed = {};  // today's name to the old one
  bool flat_weights = false;                        // trials on sets had no names at all
  std::vector<double> record = std::vector<double>(12, 1.0);

  std::vector<float> flat(float salt) const {
    std::vector<float> out;
    for (const std::string& name : order)
      for (int64_t i = 0; i < element_count(parameter(name)); ++i) out.push_back(number_of(name, i, salt));
    return out;
  }
  Parameter parameter(const std::string& name) const {
    for (const Parameter& p : parameters(trial.network))
      if (p.name == name) return p;
    ADD_FAILURE() << "the network has no " << name;
    return {};
  }
  void write(const std::filesystem::path& path) const {
    const std::vector<float> weights = flat(1), m = flat(2), v = flat(3);
    const int64_t step = 7, size = static_cast<int64_t>(m.size());
    std::vector<TensorToWrite> out{
        {"adam.m", StoredType::f32, {size}, std::as_bytes(std::span(m))},
        {"adam.v", StoredType::f32, {size}, std::as_bytes(std::span(v))},
        {"step", StoredType::i64, {1}, std::as_bytes(std::span(&step, 1))},
        {"record", StoredType::f64, {int64_t(record.size())}, std::as_bytes(std::span(record))}};
    if (flat_weights) {
      out.push_back({"parameters", StoredType::f32, {size}, std::as_bytes(std::span(weights))});
    } else {
      size_t at = 0;
      for (const std::string& name : order) {
        const Parameter p = parameter(name);
        const auto count = static_cast<size_t>(element_count(p));
        out.push_back({renamed.contains(name) ? renamed.at(name) : name, StoredType::f32, p.shape,
                       std::as_bytes(std::span(weights).subspan(at, count))});
        at += count;
      }
    }
    write_safetensors(path, out);
  }
};

void expect_read(const OldFile& file) {
  ASSERT_EQ(file.order.size(), parameters(file.trial.network).size());
  TemporaryFolder folder;
  file.write(folder.path() / "checkpoint.safetensors");
  const Saved saved = load_trial(folder.path() / "checkpoint.safetensors", file.trial).value();
  EXPECT_EQ(saved.state.step, 7);
  const Layout layout(file.trial.network);
  for (const Slot& slot : layout.slots())
    for (int64_t i = 0; i < element_count(slot.parameter); ++i) {
      const auto at = static_cast<size_t>(slot.offset + i);
      const std::string& name = slot.parameter.name;
      ASSERT_EQ(saved.state.parameters[at], number_of(name, i, 1)) << name;
      ASSERT_EQ(saved.state.m[at], number_of(name, i, 2)) << name;
      ASSERT_EQ(saved.state.v[at], number_of(name, i, 3)) << name;
    }
}

std::vector<std::string> in_block(int64_t l, std::initializer_list<const char*> names) {
  std::vector<std::string> out;
  for (const char* name : names) out.push_back("blocks." + std::to_string(l) + "." + name);
  return out;
}

TEST(OldLayout, OfAnEncoderHadEachBiasOfTheMlpBehindItsMatrix) {
  EncoderWords w = small_words();
  w.norm = NormKind::layer;
  w.embed = 12;
  w.answer = 3;
  w.positions = 6;
  const TrialSpec t = trial_of(w);
  std::vector<std::string> order{"embed.W_in", "embed.b_in", "embed.W_pos"};
  for (int64_t l = 0; l < 2; ++l)
    for (const std::string& name : in_block(
             l, {"ln1.w", "ln1.b", "attn.W_Q", "attn.W_K", "attn.W_V", "attn.W_O", "attn.b_Q", "attn.b_K",
                 "attn.b_V", "attn.b_O", "ln2.w", "ln2.b", "mlp.W_in", "mlp.b_in", "mlp.W_out", "mlp.b_out"}))
      order.push_back(name);
  order.insert(order.end(), {"unembed.W_U", "unembed.b_U"});
  expect_read({t, order, {{"embed.W_in", "embed.W_map"}, {"embed.b_in", "embed.b_map"}}});
}

TEST(OldLayout, OfAnEncoderWithoutBiasesIsReadToo) {
  EncoderWords w = small_words();
  w.bias = false;
  w.layers = 1;
  expect_read({trial_of(w), in_block(0, {"ln1.w", "attn.W_Q", "attn.W_K", "attn.W_V", "attn.W_O", "ln2.w",
                                         "mlp.W_in", "mlp.W_out"})});
}

TEST(OldLayout, OfTheOneLayerNetworkHadTheBiasOfQueriesBeforeTheOutputMap) {
  TrialSpec t = small_layer(8, 2, 9, 3);
  t.network = points_layer(8, 3, 9, 1.0, 8, 2, 2);
  expect_read({t,
               {"points.embed.W_pos", "blocks.0.attn.W_Q", "blocks.0.attn.W_K", "blocks.0.attn.b_Q",
                "blocks.0.attn.W_O"},
               {{"points.embed.W_pos", "embed.W_pos"}}});
}

TEST(OldLayout, OfATrialOnASetWasNothingButFlatBuffers) {
  TrialSpec t;
  t.network =
      token_network({.layers = 1, .heads = 2, .width = 4, .mlp = true, .positions = true, .tokens = 3}, 5, 2);
  t.protocol.window = 5;
  std::vector<std::string> order{"embed.W_E",   "embed.W_pos",     "embed.W_map",
                                 "embed.b_map", "embed.ln_post.w", "embed.ln_post.b"};
  for (const std::string& name : in_block(
           0, {"ln1.w", "ln1.b", "attn.W_Q", "attn.W_K", "attn.W_V", "attn.W_O", "attn.b_Q", "attn.b_K",
               "attn.b_V", "attn.b_O", "ln2.w", "ln2.b", "mlp.W_in", "mlp.W_out", "mlp.b_in", "mlp.b_out"}))
    order.push_back(name);
  order.insert(order.end(), {"unembed.W_U", "unembed.b_U"});
  expect_read({t, order, {}, true, {3.5, 0.25, 9.0}});
}

}  // namespace
}  // namespace rankscope
