#include "model/streams.h"

#include <fmt/format.h>

namespace rankscope {

std::string stream_prefix(const StreamSpec& stream) { return stream.name.empty() ? "" : stream.name + "."; }

ModelSpec stream_alone(const StreamSpec& stream, const ModelSpec& spec) {
  ModelSpec alone;
  static_cast<StreamSpec&>(alone) = stream;
  alone.name.clear();
  alone.architecture = spec.architecture;
  alone.width = spec.width;
  alone.position = spec.position;
  return alone;
}

namespace {

class StreamSource : public WeightSource {
 public:
  StreamSource(WeightSource& whole, size_t k)
      : whole_(whole),
        prefix_(stream_prefix(whole.spec().sources.at(k))),
        spec_(stream_alone(whole.spec().sources[k], whole.spec())) {}

  const ModelSpec& spec() const override { return spec_; }
  Weights load(const std::string& part) override { return whole_.load(prefix_ + part); }
  void expect(const std::string& part) override { whole_.expect(prefix_ + part); }
  at::Tensor rows(const std::string& parameter, const at::Tensor& indices) override {
    return whole_.rows(prefix_ + parameter, indices);
  }
  at::Tensor row_range(const std::string& parameter, int64_t first, int64_t count) override {
    return whole_.row_range(prefix_ + parameter, first, count);
  }

 private:
  WeightSource& whole_;
  std::string prefix_;
  ModelSpec spec_;
};

}  // namespace

std::unique_ptr<WeightSource> stream_source(WeightSource& whole, size_t k) {
  return std::make_unique<StreamSource>(whole, k);
}

Weights attention_alone(const Weights& weights, const BranchSpec& branch) {
  Weights alone;
  const auto take = [&](const std::string& from, const std::string& to) {
    if (weights.has(from)) alone.set(to, weights.get(from));
  };
  for (const char* letter : {"Q", "K", "V", "O"})
    for (const char* kind : {"W_", "b_"})
      take(fmt::format("{}.{}{}", branch.name, kind, letter), fmt::format("attn.{}{}", kind, letter));
  for (const char* norm : {"q_norm", "k_norm"})
    for (const char* kind : {"w", "b"})
      take(fmt::format("{}.{}.{}", branch.name, norm, kind), fmt::format("attn.{}.{}", norm, kind));
  for (const char* kind : {"w", "b"})
    take(fmt::format("{}.{}", branch.norm_name, kind), fmt::format("ln1.{}", kind));
  return alone;
}

}  // namespace rankscope
