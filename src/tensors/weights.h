// The tensors of one part of a model (the embedding, one block, the head), by the names of parts/parameters.h
// without the part: "attn.W_Q", "ln1.w", "mlp.b_in".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/tensor_fwd.h"
#include "spec/model.h"

namespace rankscope {

class Weights {
 public:
  Weights();
  Weights(Weights&&) noexcept;
  Weights& operator=(Weights&&) noexcept;
  ~Weights();

  void set(std::string_view name, const at::Tensor& tensor);
  bool has(std::string_view name) const;
  const at::Tensor& get(std::string_view name) const;          // an Error names it when it is not there
  const at::Tensor& get_or_none(std::string_view name) const;  // an undefined tensor when it is not there
  /// The same by value; what is not there is read by `later`, used and dropped.
  at::Tensor fetch(std::string_view name) const;
  void later(std::function<at::Tensor(const std::string& name)> read);
  Weights shallow_copy() const;  // shares the tensors

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Where weights come from: a checkpoint, a random twin, a test. Parts are asked for in the order of the pass
/// and dropped after use, so a source never needs to hold more than one.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual const ModelSpec& spec() const = 0;
  /// "embed", "blocks.3", "ln_final" or "unembed", converted to the pass's dtype on its device. Of the large
  /// tables (embed.W_E, unembed.W_U) only what `rows` asks for is read; see rows().
  virtual Weights load(const std::string& part) = 0;
  /// The part that will be asked for next: a source that can reads it meanwhile.
  virtual void expect(const std::string& /*part*/) {}
  /// Rows of a vocabulary-sized table: "embed.W_E" by token id, "unembed.W_U" by a range.
  virtual at::Tensor rows(const std::string& parameter, const at::Tensor& indices) = 0;
  virtual at::Tensor row_range(const std::string& parameter, int64_t first, int64_t count) = 0;
};

/// `load` leaves these to rows() and row_range(): they may be larger than everything else together.
bool is_vocabulary_table(std::string_view parameter);

}  // namespace rankscope
