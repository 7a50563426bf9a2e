// What is asked of a command that looks at a model, and what comes back. Knows nothing of torch, so that the
// command line can speak it; the work is in librankscope.so behind engine/engine.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/array.h"
#include "base/json.h"
#include "verdict/verdict.h"

namespace rankscope {

constexpr int kMostThreads = 1024;

struct ScanRequest {
  std::filesystem::path model;
  std::string init;  // `scan`: a shape or a config.json at random initialisation instead
  std::optional<std::filesystem::path> baseline;  // judged against this checkpoint on the same input
  std::vector<std::string> texts;                 // files; "-" is standard input
  bool whole = false;                             // windows of max_length instead of one sample per line
  bool lines = false;                             // every line a sample, however short
  std::string column = {};                        // of a table or of JSONL: where the texts are
  std::optional<std::filesystem::path> token_ids;
  std::optional<std::filesystem::path> pixels;  // safetensors with pixel_values, for models that read images
  std::optional<std::filesystem::path> features;  // with input_features, for models that read sounds
  bool random_tokens = false;
  bool zipf = false;                      // random tokens as often as the words of a text
  int64_t samples = 32;                   // at most this many
  int64_t max_length = 128;               // longer samples are cut
  int64_t batch_size = 8;                 // samples computed at once
  std::vector<std::string> off;           // "skip+mlp": one variant each
  std::vector<std::string> rank;          // "qk=8"
  std::vector<std::string> replace = {};  // "softmax=sinkhorn:rounds=3@L3-5"
  bool null_models = false;               // random twin, shuffled tokens
  std::string ablate;                     // kinds of parts to take out one by one: "heads,mlps"; empty: none
  std::string ablate_by = "zero";         // what stands in their place: zero, mean, resample
  int64_t ablate_samples = 8;             // of the samples: one of each of so many equal parts
  std::vector<std::string> lenses;        // empty: all
  std::string layers;                     // "0-5,11"; empty: all
  std::string dtype = "float32";
  std::string device = "cpu";
  int64_t device_memory = 0;          // bytes of a GPU's memory to use; 0: all that is free
  std::string precision = "float32";  // of products on a GPU: float32 or tf32
  int threads = 0;                    // up to kMostThreads; 0: all cores
  uint64_t seed = 0;
  Thresholds thresholds;
  bool show = false;  // keep what a report shows of the first sample: ScanResult::arrays
  std::optional<std::filesystem::path> patterns;  // and its exact attention matrices, as safetensors
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

}  // namespace rankscope
