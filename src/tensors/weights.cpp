#include "tensors/weights.h"

#include "base/error.h"

namespace rankscope {

struct Weights::Impl {
  std::map<std::string, at::Tensor, std::less<>> tensors;
  std::function<at::Tensor(const std::string&)> read;  // what is left for later
};

Weights::Weights() : impl_(std::make_unique<Impl>()) {}
Weights::Weights(Weights&&) noexcept = default;
Weights& Weights::operator=(Weights&&) noexcept = default;
Weights::~Weights() = default;

void Weights::set(std::string_view name, const at::Tensor& tensor) {
  impl_->tensors[std::string(name)] = tensor;
}

bool Weights::has(std::string_view name) const { return impl_->tensors.count(name) > 0; }

const at::Tensor& Weights::get(std::string_view name) const {
  const auto it = impl_->tensors.find(name);
  if (it == impl_->tensors.end()) throw Error(fmt::format("the parameter {} is not loaded", name));
  return it->second;
}

const at::Tensor& Weights::get_or_none(std::string_view name) const {
  static const at::Tensor none;
  const auto it = impl_->tensors.find(name);
  return it == impl_->tensors.end() ? none : it->second;
}

at::Tensor Weights::fetch(std::string_view name) const {
  const auto it = impl_->tensors.find(name);
  return it == impl_->tensors.end() && impl_->read ? impl_->read(std::string(name)) : get(name);
}

void Weights::later(std::function<at::Tensor(const std::string&)> read) { impl_->read = std::move(read); }

Weights Weights::shallow_copy() const {
  Weights copy;
  copy.impl_->tensors = impl_->tensors;
  copy.impl_->read = impl_->read;
  return copy;
}

bool is_vocabulary_table(std::string_view parameter) {
  return parameter == "embed.W_E" || parameter.ends_with(".embed.W_E") || parameter == "unembed.W_U";
}

}  // namespace rankscope
