#include "model/random_source.h"

#include <ATen/Parallel.h>

#include "parts/parameters.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

class RandomSource : public WeightSource {
 public:
  RandomSource(const ModelSpec& spec, uint64_t seed, const std::string& dtype, const std::string& device)
      : spec_(spec),
        seed_(seed),
        options_(at::TensorOptions().dtype(dtype_of(dtype)).device(device_of(device))) {}

  const ModelSpec& spec() const override { return spec_; }

  Weights load(const std::string& part) override {
    Weights w;
    std::map<std::string, Parameter> later;  // experts: drawn when they are taken
    for (const Parameter& p : parameters_of(spec_, part)) {
      if (is_vocabulary_table(p.name)) continue;
      const std::string name = p.name.substr(part.size() + 1);
      if (p.on_demand)
        later.emplace(name, p);
      else
        w.set(name, draw(p, 0, p.shape[0]));
    }
    if (!later.empty())
      w.later([this, later = std::move(later)](const std::string& name) {
        const Parameter& p = later.at(name);
        return draw(p, 0, p.shape[0]);
      });
    return w;
  }

  at::Tensor rows(const std::string& name, const at::Tensor& indices) override {
    const Parameter p = find(name);
    const at::Tensor here = indices.to(at::kCPU, at::kLong).contiguous();
    std::vector<at::Tensor> out;
    for (int64_t i = 0; i < here.size(0); ++i) out.push_back(drawn(p, here.data_ptr<int64_t>()[i], 1));
    return at::cat(out).to(options_);
  }

  at::Tensor row_range(const std::string& name, int64_t first, int64_t count) override {
    return draw(find(name), first, count);
  }

 private:
  Parameter find(const std::string& name) const {
    for (const Parameter& p : parameters_of(spec_, name.substr(0, name.rfind('.'))))
      if (p.name == name) return p;
    return {};
  }

  at::Tensor draw(const Parameter& p, int64_t first, int64_t count) const {
    return drawn(p, first, count).to(options_);
  }

  // Rows [first, first + count) of a parameter, on the host.
  at::Tensor drawn(const Parameter& p, int64_t first, int64_t count) const {
    std::vector<int64_t> shape = p.shape;
    shape[0] = count;
    const at::Tensor x = at::empty(shape, at::kFloat);
    const int64_t row = x.numel() / std::max<int64_t>(1, count);
    float* out = x.data_ptr<float>();
    at::parallel_for(0, x.numel(), 4096, [&](int64_t begin, int64_t end) {
      rankscope::draw(p, spec_, seed_, first * row + begin, end - begin, out + begin);
    });
    return x;
  }

  ModelSpec spec_;
  uint64_t seed_;
  at::TensorOptions options_;
};

}  // namespace

std::unique_ptr<WeightSource> random_source(const ModelSpec& spec, uint64_t seed, const std::string& dtype,
                                            const std::string& device) {
  return std::make_unique<RandomSource>(spec, seed, dtype, device);
}

}  // namespace rankscope
