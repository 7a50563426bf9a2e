// A Hugging Face folder, opened: config, spec, tensors, and which parameter is where. Knows nothing of torch.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/architecture.h"
#include "checkpoint/safetensors.h"
#include "model/parameters.h"

namespace rankscope {

class Checkpoint {
 public:
  /// Opens and checks the whole folder: a missing tensor, a wrong shape or an unknown architecture is an error here,
  /// before any work. `.bin` checkpoints and adapters are refused with the conversion to run.
  explicit Checkpoint(const std::filesystem::path& folder);

  struct Place {  // where a parameter's numbers are
    Source source;
    const SafetensorsFile* file;
    const TensorEntry* entry;
  };

  const std::filesystem::path& folder() const { return folder_; }
  const Json& config() const { return config_; }
  const ModelSpec& spec() const { return spec_; }
  const Architecture& architecture() const { return *architecture_; }
  const TensorStore& store() const { return *store_; }
  const Place& place(const std::string& parameter) const;

  /// Stored tensors no parameter uses (pooler, classifier, buffers), alphabetically.
  std::vector<std::string> unused() const;

 private:
  std::filesystem::path folder_;
  Json config_;
  const Architecture* architecture_ = nullptr;
  ModelSpec spec_;
  std::unique_ptr<TensorStore> store_;
  std::map<std::string, Place> places_;
};

}  // namespace rankscope
