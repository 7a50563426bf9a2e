// The training step's forward pass: free to fuse, tied to the observed pass by a contract test.
#pragma once

#include <map>

#include "train/network.h"

namespace rankscope {

/// The parameters of one trial ([out, in]) or of a stack ([trials, out, in]) by name; leaves of the autograd
/// graph.
class ParameterViews {
 public:
  /// Views into `flat` [size] or [trials, size]; with `gradients` each is a leaf that requires them.
  ParameterViews(const Layout& layout, const at::Tensor& flat, bool gradients);
  const at::Tensor& get(const std::string& name) const;
  at::Tensor get_or_none(const std::string& name) const;
  /// In the layout's order; Q, K and V of self-attention are one leaf, "blocks.0.attn.W_QKV".
  const std::vector<at::Tensor>& leaves() const { return leaves_; }
  /// Where each leaf starts in the flat buffer of a trial.
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  std::vector<at::Tensor> leaves_;
  std::vector<int64_t> offsets_;
  std::map<std::string, size_t> index_;
};

/// The answers [.., sequences, answers, answer width] the network gives. `specs` has one entry a trial: heads
/// and score scales may differ between the trials of a stack.
at::Tensor forward(const std::vector<const NetworkSpec*>& specs, const ParameterViews& parameters,
                   const TaskBatch& batch);

/// Squared error of each sequence, averaged over its answers: [.., sequences].
at::Tensor squared_error(const at::Tensor& answers, const at::Tensor& target);

}  // namespace rankscope
