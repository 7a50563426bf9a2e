// The parameters of a flat buffer by name, as leaves of the autograd graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "tensors/weights.h"
#include "train/layout.h"

namespace rankscope {

/// Of one trial ([out, in]) or of a stack ([trials, out, in]).
class ParameterViews {
 public:
  /// Views into `flat` [size] or [trials, size]; with `gradients` each is a leaf that requires them. Where
  /// `merged`, Q, K and V are one leaf, "blocks.0.attn.W_QKV": one product serves all three.
  ParameterViews(const Layout& layout, const at::Tensor& flat, bool gradients, bool merged);
  const at::Tensor& get(const std::string& name) const;
  at::Tensor get_or_none(const std::string& name) const;
  /// In the layout's order.
  const std::vector<at::Tensor>& leaves() const { return leaves_; }
  /// Where each leaf starts in the flat buffer of a trial.
  const std::vector<int64_t>& offsets() const { return offsets_; }
  bool merged() const { return merged_; }
  /// -1: the views are of one trial.
  int64_t trials() const { return trials_; }

  /// What belongs to "embed", "blocks.3", ..., by the names within; of one trial of a stack.
  Weights part(const std::string& part, int64_t trial = -1) const;

 private:
  std::vector<at::Tensor> leaves_;
  std::vector<int64_t> offsets_;
  std::map<std::string, size_t> index_;
  bool merged_;
  int64_t trials_;
};

}  // namespace rankscope
