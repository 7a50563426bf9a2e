// `rankscope scan`, whole: what is asked for and what comes back. Knows nothing of torch, so the command line
// can speak it; the work is in librankscope.so behind engine/engine.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/array.h"
#include "base/json.h"
#include "base/table.h"
#include "spec/model.h"

namespace rankscope {

/// The numbers the verdict compares with. Each is printed with the sentence that used it and can be set:
/// `--threshold collapse=0.05`.
struct Thresholds {
  double collapse = 0.1;  // trimmed relative residual below this: the layer's tokens are nearly all alike
  double collapse_ratio = 0.5;  // ... and below this share of the baseline, where there is one
  double sink = 0.3;            // mass above uniform that makes a head a sink (design: sink_ratio)
  double dead = 0.01;           // head_output_rel below this: a candidate for a dead head
  double epsilon = 1e-3;        // output_kl below this: taking the head out changes nothing
  double low_rank = 0.1;        // qk/ov effective rank below this share of the head's width
  double massive = 1000;        // massive_ratio above this: massive activations
  double short_text = 8;        // fewer content tokens than this: the evidence does not decide
};

struct ScanRequest {
  std::filesystem::path model;
  std::optional<std::filesystem::path> baseline;  // judged against this checkpoint on the same input
  std::vector<std::string> texts;                 // files; "-" is standard input
  bool whole = false;                             // windows of max_length instead of one sample per line
  std::optional<std::filesystem::path> token_ids;
  std::optional<std::filesystem::path> pixels;  // safetensors with pixel_values, for models that read images
  bool random_tokens = false;
  bool zipf = false;                // random tokens as often as the words of a text
  int64_t samples = 32;             // at most this many
  int64_t max_length = 128;         // longer samples are cut
  int64_t batch_size = 8;           // samples computed at once
  std::vector<std::string> off;     // "skip+mlp": one variant each
  std::vector<std::string> rank;    // "qk=8"
  bool null_models = false;         // random twin, shuffled tokens
  bool ablate = false;              // take candidate heads out, alone and together
  std::vector<std::string> lenses;  // empty: all
  std::string layers;               // "0-5,11"; empty: all
  std::string dtype = "float32";
  std::string device = "cpu";
  int threads = 0;  // 0: all cores
  uint64_t seed = 0;
  Thresholds thresholds;
  bool show = false;  // keep what a report shows of the first sample: ScanResult::arrays
  std::optional<std::filesystem::path> patterns;  // and its exact attention matrices, as safetensors
};

/// One sentence of the verdict with the numbers behind it.
struct Finding {
  std::string topic;     // "collapse", "support", "sink", "head", "rank", "massive", "input"
  std::string sentence;  // carries its number, its threshold and its baseline
  bool known = true;     // false: the evidence does not decide, and the sentence says so
  int layer = -1, head = -1;
  double value = kNone, baseline = kNone, threshold = kNone;
  bool measured = true;  // false: no lens looked; left out where the user chose the lenses
};

struct ScanResult {
  ModelSpec spec;
  ResultTable table;
  std::vector<Finding> verdict;
  std::vector<std::string> notes;  // what was cut, left out or sampled: printed, and part of the manifest
  Json manifest;
  std::vector<NamedArray>
      arrays;  // spectra and pooled attention of the first sample, where `show` asked for them
};

/// How far the pass has come, in blocks; called often, cheap to ignore.
using ProgressCallback = std::function<void(int64_t done, int64_t total, const std::string& what)>;

ScanResult scan(const ScanRequest& request, const ProgressCallback& progress);

/// The verdict in words, from the table alone. `output_kl` rows of variants named "-head:L5H3" and
/// "-heads:L5H3+L7H0" are what --ablate measured.
std::vector<Finding> judge(const ResultTable& table, const ModelSpec& spec, const Thresholds& thresholds,
                           int64_t shortest_content);

}  // namespace rankscope
