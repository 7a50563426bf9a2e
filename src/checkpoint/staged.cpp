#include "checkpoint/staged.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <future>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "checkpoint/staging.h"
#include "checkpoint/stored.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

constexpr int64_t kStagingBuffer = int64_t{64} << 20;

class StagedSource : public WeightSource {
 public:
  StagedSource(const Checkpoint& checkpoint, const std::string& dtype, const std::string& device,
               std::unique_ptr<WeightSource> tables, int64_t most_ahead)
      : checkpoint_(checkpoint),
        device_(device),
        options_(at::TensorOptions().dtype(dtype_of(dtype)).device(device_of(device))),
        tables_(std::move(tables)),
        most_ahead_(most_ahead > 0 ? most_ahead : device_memory(device).free / 3),
        staging_(options_.device().is_cuda(), kStagingBuffer) {}

  ~StagedSource() override {
    if (ahead_.valid()) ahead_.wait();
  }

  const ModelSpec& spec() const override { return checkpoint_.spec(); }

  void expect(const std::string& part) override {
    if (ahead_.valid() || bytes_on_device(part) > most_ahead_) return;
    expected_ = part;
    ahead_ = std::async(std::launch::async, [this, part] { return staged(part); });
  }

  Weights load(const std::string& part) override {
    std::optional<Staged> here;
    if (ahead_.valid()) {
      const bool same = expected_ == part;
      try {
        Staged there = ahead_.get();
        if (same) here = std::move(there);
      } catch (const c10::OutOfMemoryError&) {  // then it is read now, when the block before it is gone
      }
    }
    if (!here) here = staged(part);
    if (here->refused != nullptr) refuse_weights(*here->refused);
    for (const at::Tensor& made : here->tensors) {
      here->arrived.hold_back(made);
      used_here(made);
    }
    return std::move(here->weights);
  }

  at::Tensor rows(const std::string& parameter, const at::Tensor& indices) override {
    return tables_->rows(parameter, indices);
  }
  at::Tensor row_range(const std::string& parameter, int64_t first, int64_t count) override {
    return tables_->row_range(parameter, first, count);
  }

 private:
  struct Staged {
    Weights weights;
    std::vector<at::Tensor> tensors;             // the same, to be told who uses them
    const Checkpoint::Place* refused = nullptr;  // the first that is not finite
    DeviceEvent arrived;
  };

  int64_t bytes_on_device(const std::string& part) const {
    int64_t bytes = 0;
    for (const Parameter& p : parameters_of(spec(), part)) {
      if (is_vocabulary_table(p.name)) continue;
      if (p.on_demand) continue;
      const TensorEntry& entry = *checkpoint_.place(p.name).entry;
      bytes += element_count(p) * static_cast<int64_t>(options_.dtype().itemsize()) +
               static_cast<int64_t>(entry.end - entry.begin);
    }
    return bytes;
  }

  // On whatever thread asks. The answer whether all is finite is waited for here: it is the last of what the
  // copying stream does, and nobody who computes waits with it.
  Staged staged(const std::string& part) {
    const c10::NoGradGuard no_grad;
    Staged out;
    on_copy_stream(device_, [&] {
      std::map<const TensorEntry*, at::Tensor> stored;  // a fused tensor serves several parameters
      std::vector<const Checkpoint::Place*> places;
      std::vector<at::Tensor> largest;
      std::map<std::string, Parameter> later;  // experts: read when they are taken, and dropped
      for (const Parameter& p : parameters_of(spec(), part)) {
        if (is_vocabulary_table(p.name)) continue;
        const Checkpoint::Place& place = checkpoint_.place(p.name);
        const std::string name = p.name.substr(part.size() + 1);
        if (p.on_demand) {
          later.emplace(name, p);
          continue;
        }
        at::Tensor& raw = stored[place.entry];
        if (!raw.defined()) raw = copied(place);
        const at::Tensor tensor = finished(oriented(raw, place, p).to(options_), place, p);
        out.weights.set(name, tensor);
        out.tensors.push_back(tensor);
        places.push_back(&place);
        largest.push_back(at::linalg_vector_norm(tensor, INFINITY));  // which NaN and Inf win
      }
      if (!later.empty())
        out.weights.later(
            [this, later = std::move(later)](const std::string& key) { return read(later.at(key)); });
      if (largest.empty()) return;
      const at::Tensor finite = at::stack(largest).isfinite().cpu();
      for (size_t i = places.size(); i-- > 0;)
        if (!finite.data_ptr<bool>()[i]) out.refused = places[i];
      out.arrived.record(out.tensors.front());
    });
    return out;
  }

  // All that is stored of the place, on the device.
  at::Tensor copied(const Checkpoint::Place& place) {
    std::vector<at::Tensor> all{copied(*place.file, *place.entry)};
    for (const Checkpoint::Stored& more : place.more) all.push_back(copied(*more.file, *more.entry));
    return all.size() == 1 ? all.front() : at::cat(all, 0);
  }

  at::Tensor copied(const SafetensorsFile& file, const TensorEntry& entry) {
    const std::span<const std::byte> bytes = file.bytes(entry);
    const at::Tensor there = at::empty({static_cast<int64_t>(bytes.size())}, options_.dtype(at::kByte));
    staging_.copy(bytes, there);
    file.release(entry);
    return as_stored(there, entry);
  }

  // One parameter by itself, now. Not through the buffers: another thread may be at them.
  at::Tensor read(const Parameter& p) const {
    const Checkpoint::Place& place = checkpoint_.place(p.name);
    const at::Tensor there = stored_tensor(place).to(options_.device());
    const at::Tensor tensor = finished(oriented(there, place, p).to(options_), place, p);
    release_pages(place);
    if (!all_finite(tensor)) refuse_weights(place);
    return tensor;
  }

  const Checkpoint& checkpoint_;
  std::string device_;
  at::TensorOptions options_;
  std::unique_ptr<WeightSource> tables_;
  int64_t most_ahead_;
  Staging staging_;  // one thread at a time: `load` has waited for the one of `expect`
  std::string expected_;
  std::future<Staged> ahead_;
};

}  // namespace

std::unique_ptr<WeightSource> staged_source(const Checkpoint& checkpoint, const std::string& dtype,
                                            const std::string& device, std::unique_ptr<WeightSource> tables,
                                            int64_t most_ahead) {
  return std::make_unique<StagedSource>(checkpoint, dtype, device, std::move(tables), most_ahead);
}

}  // namespace rankscope
