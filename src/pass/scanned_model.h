// What a command looks at: a checkpoint, or a shape at random initialisation.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "pass/input.h"
#include "pass/request.h"
#include "tensors/weights.h"

namespace rankscope {

class ScannedModel {
 public:
  /// `init` names a shape (pass/shapes.h); empty: the checkpoint at request.model. What request.off names is
  /// taken out of either.
  ScannedModel(const ScanRequest& request, const std::string& init);

  const ModelSpec& spec() const { return spec_; }
  const Checkpoint* checkpoint() const { return checkpoint_ ? &*checkpoint_ : nullptr; }
  /// Weights in the given arithmetic; those of a shape are a function of the seed.
  std::unique_ptr<WeightSource> source(const std::string& dtype, uint64_t seed) const;
  /// The samples, every one of at least two tokens: with one token there is nothing to compare.
  ScanInput input() const;

 private:
  std::filesystem::path folder() const;  // of the model, or of the config

  ScanRequest request_;
  std::string init_;
  std::optional<Checkpoint> checkpoint_;
  ModelSpec spec_;
};

/// Says where the weights go on behind the layers that config.json has, and what inside of these is not read.
void note_unused(const Checkpoint& checkpoint, std::vector<std::string>& notes);

/// Words, threads and memory before the work, as `scan` has them.
void prepare_run(const ScanRequest& request);

}  // namespace rankscope
