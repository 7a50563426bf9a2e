// A trained network as the rest of the program sees models: a spec over a vocabulary, a source of weights,
// and a folder that `scan`, `collapse` and `paths` read.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/batch.h"
#include "tensors/weights.h"
#include "train/protocol.h"

namespace rankscope {

/// Rows of the exported vocabulary of a task that draws fresh points.
constexpr int64_t kExportedPoints = 4096;

class TrainedModel : public WeightSource {
 public:
  /// `parameters` as the trial's layout has them; weights are given in float64. What stands between a token
  /// and the first norm is folded into the table of words. Where tokens are points, those of `words` become
  /// the vocabulary (token i of sequence s is the word s T + i), or a sample of the task's points. The
  /// one-layer network becomes a block without skip, norm and MLP, in which every token asks.
  TrainedModel(const TrialSpec& trial, const std::vector<float>& parameters, const TokenSet* words = nullptr);

  const ModelSpec& spec() const override { return spec_; }
  Weights load(const std::string& part) override;
  at::Tensor rows(const std::string& parameter, const at::Tensor& indices) override;
  at::Tensor row_range(const std::string& parameter, int64_t first, int64_t count) override;

  /// config.json and model.safetensors; `task` is written beside the spec.
  void write(const std::string& task, const std::filesystem::path& folder) const;

 private:
  ModelSpec spec_;
  std::map<std::string, at::Tensor> tensors_;  // by the names of parts/parameters.h
};

/// The set's sequences in words of TrainedModel.
std::vector<Sample> samples_of(const TokenSet& set);

}  // namespace rankscope
