// A trained token network as the rest of the program sees models: a spec, a source of weights, batches; and
// as a folder that `scan`, `collapse` and `paths` read.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "model/batch.h"
#include "model/weights.h"
#include "tasks/token_task.h"
#include "train/token_network.h"

namespace rankscope {

class TokenModel : public WeightSource {
 public:
  /// `flat` holds the parameters; its dtype is that of the weights. The linear maps between a token and the
  /// first norm are folded into the tables; where tokens are points, those of `set` become the vocabulary,
  /// token i of sequence s the word s T + i.
  TokenModel(const TokenNetwork& network, const at::Tensor& flat, const TokenSet& set);
  ~TokenModel() override;

  const ModelSpec& spec() const override { return spec_; }
  Weights load(const std::string& part) override;
  at::Tensor rows(const std::string& parameter, const at::Tensor& indices) override;
  at::Tensor row_range(const std::string& parameter, int64_t first, int64_t count) override;
  const std::map<std::string, at::Tensor>& tensors() const { return tensors_; }

 private:
  ModelSpec spec_;
  std::map<std::string, at::Tensor> tensors_;  // by the names of model/parameters.h
};

/// The set's sequences without their padding, in words of TokenModel.
std::vector<Sample> samples_of(const TokenSet& set);

/// Some sequences of the set side by side, padded to the longest of them only.
TokenBatch batch_of(const TokenSet& set, const std::vector<int64_t>& sequences, bool float64 = false);

/// config.json and model.safetensors.
void export_token_model(const TokenModel& model, const std::string& task,
                        const std::filesystem::path& folder);

}  // namespace rankscope
