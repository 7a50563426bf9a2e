// Samples packed one behind another, without padding: a sample gives the same numbers alone and in any
// company.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "spec/model.h"

namespace rankscope {

/// One input, as the tokenizer or a file gave it.
struct Sample {
  std::vector<int64_t> ids;
  std::vector<int64_t>
      types;  // empty: none given (BERT then reads zeros, XLNet leaves its segment scores out)
  std::vector<int64_t> positions;  // empty: 0, 1, 2, ...
  std::vector<uint8_t> special;    // empty: none; 1 where the token is no content
  std::vector<float> pixels;       // instead of ids: [channels, size, size], or [mel bins, frames]
  std::vector<int64_t> shape;      // of these in the file; empty: as the network reads them
};

struct BatchTensors;  // model/batch_tensors.h

struct Batch {
  std::vector<int64_t> ids, types, positions;                // [N]; ids empty for images
  std::vector<uint8_t> content;                              // [N]
  std::vector<int64_t> offsets;                              // [S + 1]
  std::vector<int64_t> samples;                              // [S] numbers of the samples in the scan
  std::vector<float> pixels;                                 // [S, ..] as the samples have them
  bool has_types = false;                                    // whether the samples came with token types
  mutable std::shared_ptr<const BatchTensors> tensors = {};  // made when first asked for

  int64_t count() const { return static_cast<int64_t>(samples.size()); }
  int64_t tokens() const { return offsets.back(); }
  int64_t length(int64_t s) const {
    return offsets[static_cast<size_t>(s) + 1] - offsets[static_cast<size_t>(s)];
  }
};

/// Checks every id and position against the spec, sorts by length (so that equal lengths meet) and packs at
/// most `batch_size` samples together. Errors name the sample and the token.
std::vector<Batch> make_batches(const std::vector<Sample>& samples, const ModelSpec& spec,
                                int64_t batch_size);

/// What another stream reads of the same samples, in the order and the company of `batches`.
std::vector<Batch> batches_like(const std::vector<Batch>& batches, const std::vector<Sample>& samples,
                                const ModelSpec& spec);

/// The same samples in the same order, every batch of more than one cut in two.
std::vector<Batch> halved(const std::vector<Batch>& batches);

}  // namespace rankscope
