// Scans of networks with an encoder and a decoder, held against what transformers recorded.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "checkpoint/load.h"
#include "collapse/collapse.h"
#include "model/streams.h"
#include "model/truncate.h"
#include "scan/fixture_request.h"
#include "scan/scan.h"
#include "support/temporary_folder.h"

namespace rankscope::test {
namespace {

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// A recording of a fixture: its tensors, and the columns of each sample that are no padding.
class Recording {
 public:
  explicit Recording(const std::string& name)
      : file_(fixtures() / "models" / name / "activations_f64.safetensors") {}

  at::Tensor tensor(const std::string& name) const { return read_tensor(file_, name).to(at::kDouble); }
  at::Tensor ids(const std::string& side) const { return read_tensor(file_, side + "input_ids"); }
  at::Tensor real(const std::string& side, int64_t sample) const {
    return read_tensor(file_, side + "attention_mask")[sample].nonzero().squeeze(1);
  }
  int64_t samples() const { return ids("").size(0); }

  /// What --token-ids reads: both sides of every sample, without padding.
  std::string lines() const {
    std::string out;
    for (int64_t s = 0; s < samples(); ++s)
      out += fmt::format("{{\"input_ids\": [{}], \"decoder_input_ids\": [{}]}}\n", list("", s),
                         list("decoder_", s));
    return out;
  }

  /// The pattern of a sample, padding left out, [H, queries, keys].
  at::Tensor pattern(const std::string& stream, int64_t layer, int64_t sample) const {
    const std::string name = stream == "cross" ? "cross_attentions" : stream + "_attentions";
    const std::string queries = stream == "encoder" ? "" : "decoder_",
                      keys = stream == "decoder" ? "decoder_" : "";
    return tensor(fmt::format("{}.{}", name, layer))[sample]
        .index_select(1, real(queries, sample))
        .index_select(2, real(keys, sample));
  }

 private:
  std::string list(const std::string& side, int64_t sample) const {
    std::string out;
    const at::Tensor columns = real(side, sample);
    for (int64_t i = 0; i < columns.size(0); ++i)
      out += fmt::format("{}{}", i == 0 ? "" : ", ",
                         ids(side)[sample][columns[i].item<int64_t>()].item<int64_t>());
    return out;
  }
  SafetensorsFile file_;
};

// Mean over rows with a choice of H(row) / log(keys), by its definition.
double entropy_of(const at::Tensor& p, bool causal) {
  double sum = 0;
  int64_t rows = 0;
  for (int64_t i = 0; i < p.size(0); ++i) {
    const int64_t keys = causal ? i + 1 : p.size(1);
    if (keys < 2) continue;
    double h = 0;
    for (int64_t j = 0; j < keys; ++j)
      if (const double x = p[i][j].item<double>(); x > 0) h -= x * std::log(x);
    sum += h / std::log(static_cast<double>(keys));
    ++rows;
  }
  return sum / static_cast<double>(rows);
}

class Streams : public ::testing::TestWithParam<const char*> {
 protected:
  ScanRequest recorded() {
    std::ofstream(folder_.path() / "ids.jsonl") << Recording(GetParam()).lines();
    ScanRequest r;
    r.model = fixtures() / "models" / GetParam();
    r.token_ids = folder_.path() / "ids.jsonl";
    r.dtype = "float64";
    return r;
  }
  ScanRequest random(int64_t samples = 3) { return random_tokens_through(GetParam(), samples, 9); }

  TemporaryFolder folder_;
};

// The recordings agree with our patterns to 1e-14; a sum of at most 9 terms p log p loses two digits more.
constexpr double kClose = 1e-12;

TEST_P(Streams, EntropyIsThatOfTheRecordedAttentionInEveryStream) {
  ScanRequest r = recorded();
  r.lenses = {"attention"};
  const ScanResult result = scan(r, {});
  const Recording recording(GetParam());
  int64_t compared = 0;
  for (const SampleRow& row : result.table.samples) {
    if (row.metric.str() != "attention_entropy") continue;  // the loss is there, too
    const at::Tensor p = recording.pattern(row.stream.str(), row.layer, row.sample)[row.head];
    EXPECT_NEAR(row.value, entropy_of(p, row.stream == "decoder"), kClose)
        << row.stream.str() << " " << row.site.str() << " head " << row.head << " sample " << row.sample;
    ++compared;
  }
  int64_t expected = 0;  // every head of every stream and sample
  for (const BlockSpec& b : result.spec.sources.front().blocks) expected += b.attention().heads;
  for (const BlockSpec& b : result.spec.blocks)
    for (const BranchSpec& branch : b.branches)
      if (branch.attention()) expected += branch.attention()->heads;
  EXPECT_EQ(compared, expected * recording.samples());
}

TEST_P(Streams, EveryNumberIsThereOnceAndNamesItsStream) {
  ScanRequest r = random();
  r.off = {"skip", "mlp"};
  r.null_models = true;
  const ScanResult result = scan(r, {});
  std::set<std::tuple<std::string, std::string, std::string, std::string, int, std::string>> seen;
  std::map<std::string, std::set<std::string>> metrics;
  for (const Row& row : result.table.rows) {
    EXPECT_TRUE(row.stream == "encoder" || row.stream == "decoder" || row.stream == "cross")
        << row.site.str() << " " << row.metric.str() << " of stream \"" << row.stream.str() << '"';
    EXPECT_TRUE(seen.emplace(row.variant.str(), row.stream.str(), row.site.str(), row.metric.str(), row.head,
                             row.tokens.str())
                    .second)
        << row.stream.str() << " " << row.site.str() << " " << row.metric.str();
    const std::string& site = row.site.str();
    EXPECT_EQ(row.stream == "cross", site.find(".cross") != site.npos || site.find("ln_cross") != site.npos ||
                                         site.find("hook_cross_out") != site.npos)
        << site;
    metrics[row.stream.str()].insert(row.metric.str());
  }
  for (const char* name : {"attention_entropy", "effective_rank", "mixing", "sink_mass", "sink_margin",
                           "logit_rms", "head_output_rel", "head_varied_rel", "qk_effective_rank"})
    for (const char* stream : {"encoder", "decoder", "cross"})
      EXPECT_EQ(metrics[stream].count(name), 1u) << stream << " " << name;
  for (const char* stream : {"encoder", "decoder"}) EXPECT_EQ(metrics[stream].count("residual_fro_rel"), 1u);
  EXPECT_EQ(metrics["decoder"].count("output_kl"), 1u);
}

// A short decoder's text says nothing against the encoder's, nor the other way round.
TEST_P(Streams, EachStreamIsJudgedByItsOwnLengths) {
  const auto said_to_be_short = [&](size_t heard, size_t read) {
    std::ofstream file(folder_.path() / "lengths.jsonl");
    for (size_t s = 0; s < 4; ++s)
      file << fmt::format("{{\"input_ids\": {}, \"decoder_input_ids\": {}}}\n",
                          std::vector<size_t>(heard, 5 + s), std::vector<size_t>(read, 6 + s));
    file.close();
    ScanRequest r = recorded();
    r.token_ids = folder_.path() / "lengths.jsonl";
    std::set<std::string> out;
    for (const Finding& f : scan(r, {}).verdict)
      if (f.topic == "input") out.insert(f.sentence.substr(0, f.sentence.find(':')));
    return out;
  };
  EXPECT_EQ(said_to_be_short(3, 12).count("decoder"), 0u);
  EXPECT_EQ(said_to_be_short(3, 12).count("encoder"), 1u);
  EXPECT_EQ(said_to_be_short(12, 3).count("encoder"), 0u);
  EXPECT_EQ(said_to_be_short(12, 3).count("decoder"), 1u);
}

TEST_P(Streams, AHeadTakenOutOfOneStreamLeavesWhatRunsBeforeItAlone) {
  ScanRequest r = random();
  r.off = {"head:encoder.L0H1", "head:cross.L0H1", "head:decoder.L0H1"};
  r.lenses = {"residual"};
  const ScanResult result = scan(r, {});
  const auto value = [&](const std::string& variant, const char* stream, int layer) {
    for (const Row& row : result.table.rows)
      if (row.variant.str() == variant && row.stream == stream && row.layer == layer &&
          row.metric == "residual_fro_rel" && row.tokens == "all" &&
          row.site.str().ends_with("hook_resid_post"))
        return row.value;
    return std::nan("");
  };
  const double encoder = value("full", "encoder", 0), decoder = value("full", "decoder", 0);
  ASSERT_FALSE(std::isnan(encoder + decoder));
  EXPECT_NE(value("-head:encoder.L0H1", "encoder", 0), encoder);
  EXPECT_NE(value("-head:encoder.L0H1", "decoder", 0), decoder);
  for (const char* off : {"-head:cross.L0H1", "-head:decoder.L0H1"}) {
    EXPECT_EQ(value(off, "encoder", 0), encoder) << off;
    EXPECT_NE(value(off, "decoder", 0), decoder) << off;
  }
  EXPECT_EQ(error_of([&] {
              ScanRequest wrong = random();
              wrong.off = {"head:encoders.L0H1"};
              scan(wrong, {});
            }),
            "there is no stream \"encoders\"");
}

TEST_P(Streams, TheDecoderReadsTheTextShiftedRight) {
  ScanRequest r = random(1);
  r.show = true;
  r.lenses = {"residual"};
  const ScanResult result = scan(r, {});
  const auto shown = result.manifest["input"]["shown"];
  const auto encoder = shown["encoder"].get<std::vector<std::string>>(),
             decoder = shown["tokens"].get<std::vector<std::string>>();
  ASSERT_EQ(encoder.size(), 9u);
  ASSERT_EQ(decoder.size(), 9u);
  EXPECT_EQ(decoder.front(), fmt::format("#{}", result.spec.embedding.start_id));
  for (size_t i = 1; i < decoder.size(); ++i) EXPECT_EQ(decoder[i], encoder[i - 1]);
}

TEST_P(Streams, TheVerdictSpeaksOfOneStreamAtATime) {
  const ScanResult result = scan(random(), {});
  std::set<std::string> streams;
  for (const Finding& f : result.verdict) streams.insert(f.sentence.substr(0, f.sentence.find(':')));
  EXPECT_EQ(streams, (std::set<std::string>{"encoder", "decoder", "cross"}));
}

TEST_P(Streams, TheReportKeepsTheAttentionOfEveryStream) {
  ScanRequest r = recorded();
  r.show = true;
  r.patterns = folder_.path() / "patterns.safetensors";
  const ScanResult result = scan(r, {});
  const Recording recording(GetParam());
  const auto exact = [&](const char* file, const std::string& site, const std::string& stream) {
    const at::Tensor kept = read_tensor(SafetensorsFile(folder_.path() / file), site).to(at::kDouble),
                     theirs = recording.pattern(stream, 0, 0);
    ASSERT_EQ(kept.sizes(), theirs.sizes()) << site;
    EXPECT_LE((kept - theirs).abs().max().item<double>(), 1e-7) << site;  // kept in float32
  };
  exact("patterns.safetensors", "blocks.0.attn.hook_pattern", "decoder");
  exact("patterns.safetensors", "blocks.0.cross.hook_pattern", "cross");
  exact("patterns-encoder.safetensors", "blocks.0.attn.hook_pattern", "encoder");
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const NamedArray& a : result.arrays) shapes[a.name] = a.shape;
  const int64_t heads = result.spec.blocks.front().attention().heads;
  // Samples of seven and nine tokens: a map of a short text has a cell for each.
  EXPECT_EQ(shapes["blocks.0.cross.hook_pattern.pooled"], (std::vector<int64_t>{heads, 7, 9}));
  EXPECT_EQ(shapes["blocks.0.attn.hook_pattern.pooled"], (std::vector<int64_t>{heads, 7, 7}));
  EXPECT_EQ(shapes["encoder.blocks.0.attn.hook_pattern.pooled"].back(), 9);
}

TEST_P(Streams, ABaselineIsFollowedThroughBothStreams) {
  ScanRequest r = random();
  r.lenses = {"residual"};
  r.baseline = r.model;
  const ScanResult result = scan(r, {});
  const Row* same = result.table.find("baseline", "output_kl", -1);
  ASSERT_NE(same, nullptr);
  // The sum over the vocabulary, in double.
  EXPECT_LE(same->value, 1e-12);
}

TEST_P(Streams, WhatFollowsOneStreamSaysSoAndNamesTheEncoder) {
  CollapseRequest collapse;
  collapse.scan = random();
  EXPECT_NE(
      error_of([&] { measure_collapse(collapse, {}); }).find("paths, operators and collapse follow one"),
      std::string::npos);
  collapse.scan.model /= "encoder";
  EXPECT_EQ(error_of([&] { measure_collapse(collapse, {}); }), "");
  ScanRequest ablate = random();
  ablate.ablate = "heads";
  EXPECT_NE(error_of([&] { scan(ablate, {}); }).find("--ablate"), std::string::npos);
}

TEST_P(Streams, SamplesGiveTheSameNumbersInAnyCompany) {
  ScanRequest r = random(5);
  r.lenses = {"attention", "residual", "circuits"};
  r.batch_size = 1;
  const ScanResult alone = scan(r, {});
  r.batch_size = 4;
  const ScanResult together = scan(r, {});
  ASSERT_EQ(alone.table.samples.size(), together.table.samples.size());
  std::map<std::tuple<std::string, std::string, int, std::string, std::string, int64_t>, double> by_name;
  const auto key = [](const SampleRow& s) {
    return std::tuple(s.stream.str(), s.site.str(), s.head, s.metric.str(), s.tokens.str(), s.sample);
  };
  for (const SampleRow& s : alone.table.samples) by_name[key(s)] = s.value;
  for (const SampleRow& s : together.table.samples)
    EXPECT_NEAR(s.value, by_name.at(key(s)), 1e-10 * (1 + std::abs(s.value))) << s.site.str();
}

INSTANTIATE_TEST_SUITE_P(Networks, Streams, ::testing::Values("t5", "bart"));

// The keys of cross-attention come from the encoder and have not been through the decoder's norm.
TEST(CrossMaps, ACutMapOfAttentionToAnotherStreamIsTheBestOfItsRank) {
  const Checkpoint checkpoint(fixtures() / "models" / "t5");
  const auto source = checkpoint_source(checkpoint, "float64", "cpu");
  const Weights stored = source->load("blocks.1");
  BlockSpec block = checkpoint.spec().blocks[1];
  const int64_t rank = 2;
  for (BranchSpec& b : block.branches)
    if (b.attention()) b.attention()->truncate_qk = rank;
  const Weights cut = truncated(stored, block);
  const AttentionSpec& a = *block.branches[1].attention();
  ASSERT_EQ(block.branches[1].name, "cross");
  const at::Tensor gain = stored.get("ln_cross.w");
  for (int64_t h = 0; h < a.heads; ++h) {
    const auto map = [&](const Weights& w) {
      const at::Tensor q = w.get("cross.W_Q").narrow(0, h * a.d_qk, a.d_qk) * gain,
                       k = w.get("cross.W_K").narrow(0, h * a.d_qk, a.d_qk);
      return q.t().matmul(k);
    };
    const auto [U, S, Vh] = at::linalg_svd(map(stored), false);
    const at::Tensor best = (U.narrow(1, 0, rank) * S.narrow(0, 0, rank)).matmul(Vh.narrow(0, 0, rank));
    EXPECT_LE((map(cut) - best).abs().max().item<double>(), 1e-12 * S[0].item<double>()) << "head " << h;
  }
}

}  // namespace
}  // namespace rankscope::test
