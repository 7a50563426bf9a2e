// Many networks that differ from one in a few blocks, judged by their outputs. The full network runs once and
// what it leaves at every layer is kept; another starts at the first block in which it differs and runs on
// from there. Weights are read once for a group of networks, and groups are as large as memory allows.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "importance/units.h"
#include "pass/answers.h"
#include "pass/request.h"
#include "tensors/weights.h"

namespace rankscope {

/// A block with other words; `kv_rank` > 0: keys and values of each KV head come through a latent of that
/// width (model/kv_latent.h).
struct BlockEdit {
  BlockSpec spec;
  int64_t kv_rank = 0;
};

/// The block's weights as the edit wants them; `edit.spec` then says what they are.
Weights edited_weights(BlockEdit& edit, const Weights& weights);

/// A network that is the full one before block `first`. Either one part of that block is replaced, or blocks
/// from there on are edited.
struct Variation {
  int64_t first = 0;
  std::optional<Unit> unit = {};
  Replacement replacement = Replacement::zero;
  std::map<int64_t, BlockEdit> edits = {};
};

/// What a network's output is, by sample.
struct Judged {
  std::vector<double> loss;  // nats a token that is asked for; empty where nothing is
  std::vector<double> kl;    // from the full network, mean over tokens; without a head: its relative error
};

class Evaluator {
 public:
  struct Job {
    WeightSource& source;
    const Questions& questions;
    int64_t batch_size = 8;
    uint64_t seed = 0;
    std::string device = "cpu";
    bool parts = true;        // false: only blocks are edited, and what lies between them is not kept
    int64_t group_bytes = 0;  // of activations that networks of a group hold; 0: 1 GiB, on a GPU a quarter
    const ProgressCallback& progress;
    std::vector<int64_t> numbers = {};  // of the samples in the input, for errors; empty: as they come
  };
  /// Runs the full network. Where its activations overflow or its loss is no number, nothing can be held
  /// against it: an error that names the place.
  explicit Evaluator(const Job& job);
  ~Evaluator();

  const ModelSpec& spec() const;
  int64_t samples() const;
  const std::vector<int64_t>& asked() const;  // tokens asked for, by sample
  const Judged& full() const;
  std::vector<Judged> run(const std::vector<Variation>& variations);
  /// By pair, and by sample: how much further the output is from the full network's in `both` than it would
  /// be if what the pair's two networks of `alone` do to the last hidden state added up. In KL, or without a
  /// head as a share of the state's size; and how much more it loses, where something is asked for.
  std::vector<Judged> beyond_added(const std::vector<Variation>& alone, const std::vector<Variation>& both,
                                   const std::vector<std::pair<size_t, size_t>>& pairs);
  /// Whether what this head writes can be taken off what its layer wrote; else attention runs again.
  bool writes_heads(int64_t layer) const;

  /// Forward passes of the samples so far, in units of all blocks once: by floating-point operations.
  double passes() const;
  /// What the same would be by the sizes of the weights alone: for parts taken out one by one, the rest of
  /// the block, the blocks behind it and the logits, and one pass of the full network.
  double bound(const std::vector<Unit>& units, Replacement replacement = Replacement::zero) const;

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope
