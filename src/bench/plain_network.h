// The studies' encoder written with LibTorch alone, twice: as one would write it first, and as well as its
// operations allow. What ours is measured against and, in float64, verified against.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "train/protocol.h"

namespace rankscope {

/// A parameter of the plain network: where it lies in a trial's flat buffer (train/layout.h).
struct Place {
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
};

class PlainNetwork {
 public:
  virtual ~PlainNetwork() = default;
  /// Mean squared error of each trial: [trials].
  virtual at::Tensor loss(const TaskBatch& batch) const = 0;
  virtual const std::vector<at::Tensor>& leaves() const = 0;
  /// From the gradients of the leaves: one row a trial, as its flat buffer lies.
  virtual at::Tensor flat(const std::vector<at::Tensor>& gradients) const = 0;
};

/// flat [trials, size], whose device and type the network takes. Post-norm encoders with unit norm, MLP and
/// biases, ranks of keys and values equal.
///   by_module = true   one trial; each of the W modules has its own parameters and its own products
///   by_module = false  a stack; all modules, heads and trials in one product, attention by the library
std::unique_ptr<PlainNetwork> plain_network(const ModelSpec& spec, int64_t tokens, const at::Tensor& flat,
                                            bool by_module);

/// Attention of qkv [rows, 3 * columns], softmax over scores divided by the root of a head's width. By
/// module: one call for each `module_columns` columns; otherwise one call of the library's fused attention
/// where it has one.
at::Tensor plain_attention(const at::Tensor& qkv, int64_t tokens, int64_t heads, int64_t module_columns);
at::Tensor library_attention(const at::Tensor& qkv, int64_t tokens, int64_t heads);

}  // namespace rankscope
