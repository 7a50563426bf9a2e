#include "train/trial_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "train/old_layout.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

using Numbers = std::array<double, sizeof(Record) / sizeof(double)>;
static_assert(sizeof(Record) % sizeof(double) == 0);

constexpr const char *kFirstMoments = "adam.m", *kSecondMoments = "adam.v";

// Every parameter of a flat buffer under its name, behind `prefix`.
void append(std::vector<TensorToWrite>& out, const Layout& layout, const std::vector<float>& flat,
            const std::string& prefix) {
  for (const Slot& slot : layout.slots()) {
    const std::span<const float> values(flat.data() + slot.offset,
                                        static_cast<size_t>(element_count(slot.parameter)));
    out.push_back(
        {prefix + slot.parameter.name, StoredType::f32, slot.parameter.shape, std::as_bytes(values)});
  }
}

std::span<const std::byte> checked(const SafetensorsFile& file, const std::string& name, StoredType type,
                                   const std::vector<int64_t>& shape) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end() || found->second.type != type || found->second.shape != shape)
    throw Error(fmt::format("\"{}\" is missing or of another shape than this trial's", name))
        .in(file.path().string())
        .hint("delete the trial's folder to start it again");
  return file.bytes(found->second);
}

template <class T>
void read(const SafetensorsFile& file, const std::string& name, StoredType type,
          const std::vector<int64_t>& shape, T* into) {
  const auto bytes = checked(file, name, type, shape);
  std::memcpy(into, bytes.data(), bytes.size());
}

std::vector<float> read_by_name(const SafetensorsFile& file, const ModelSpec& network, const Layout& layout,
                                const std::string& prefix) {
  std::vector<float> out(static_cast<size_t>(layout.size()));
  for (const Slot& slot : layout.slots()) {
    const Parameter& p = slot.parameter;
    const std::string old = prefix + old_name(p.name, network);
    const bool renamed = !file.tensors().contains(prefix + p.name) && file.tensors().contains(old);
    read(file, renamed ? old : prefix + p.name, StoredType::f32, p.shape, out.data() + slot.offset);
  }
  return out;
}

// One flat buffer in the order it had.
std::vector<float> read_flat(const SafetensorsFile& file, const ModelSpec& network, const Layout& layout,
                             const std::string& name) {
  std::vector<float> stored(static_cast<size_t>(layout.size())), out(stored.size());
  read(file, name, StoredType::f32, {layout.size()}, stored.data());
  const float* from = stored.data();
  for (const Slot& slot : old_order(network, layout)) {
    const int64_t count = element_count(slot.parameter);
    std::copy_n(from, count, out.data() + slot.offset);
    from += count;
  }
  return out;
}

std::vector<float> read_weights(const SafetensorsFile& file, const ModelSpec& network, const Layout& layout) {
  return file.tensors().contains("parameters") ? read_flat(file, network, layout, "parameters")
                                               : read_by_name(file, network, layout, "");
}

std::vector<float> read_moments(const SafetensorsFile& file, const ModelSpec& network, const Layout& layout,
                                const std::string& name) {
  return file.tensors().contains(name) ? read_flat(file, network, layout, name)
                                       : read_by_name(file, network, layout, name + ".");
}

// What trials on sets recorded before they shared this file: the loss of the epoch so far, of the last one,
// and the seconds.
Record old_set_record(const SafetensorsFile& file, int64_t step, int64_t window) {
  double numbers[3];
  read(file, "record", StoredType::f64, {3}, numbers);
  Record r;
  r.window_sum = numbers[0];
  r.window_count = static_cast<double>(step % window);
  r.last_loss = r.best_loss = numbers[1];
  r.windows = static_cast<double>(step / window);
  r.seconds = numbers[2];
  return r;
}

Record read_record(const SafetensorsFile& file, int64_t step, int64_t window) {
  if (file.tensors().contains("parameters")) return old_set_record(file, step, window);
  Numbers numbers{};
  read(file, "record", StoredType::f64, {static_cast<int64_t>(numbers.size())}, numbers.data());
  return std::bit_cast<Record>(numbers);
}

// Both must outlive the list.
void append_progress(std::vector<TensorToWrite>& out, const int64_t& step, const Numbers& numbers) {
  out.push_back({"step", StoredType::i64, {1}, std::as_bytes(std::span(&step, 1))});
  out.push_back(
      {"record", StoredType::f64, {static_cast<int64_t>(numbers.size())}, std::as_bytes(std::span(numbers))});
}

}  // namespace

void save_trial(const fs::path& file, const ModelSpec& network, const Saved& saved) {
  const auto& [state, record, precision] = saved;
  const Layout layout(network);
  std::vector<TensorToWrite> tensors;
  append(tensors, layout, state.parameters, "");
  append(tensors, layout, state.m, std::string(kFirstMoments) + ".");
  append(tensors, layout, state.v, std::string(kSecondMoments) + ".");
  const auto numbers = std::bit_cast<Numbers>(record);
  append_progress(tensors, state.step, numbers);
  const uint8_t tf32 = precision == "tf32" ? 1 : 0;
  if (!precision.empty())
    tensors.push_back({"tf32", StoredType::u8, {1}, std::as_bytes(std::span(&tf32, 1))});
  write_safetensors(file, tensors);
}

std::optional<Saved> load_trial(const fs::path& file, const TrialSpec& trial) {
  if (!fs::exists(file)) return {};
  const SafetensorsFile stored(file);
  const ModelSpec& network = trial.network;
  const Layout layout(network);
  Saved out;
  out.state.parameters = read_weights(stored, network, layout);
  out.state.m = read_moments(stored, network, layout, kFirstMoments);
  out.state.v = read_moments(stored, network, layout, kSecondMoments);
  read(stored, "step", StoredType::i64, {1}, &out.state.step);
  out.record = read_record(stored, out.state.step, trial.protocol.window);
  out.precision.clear();
  if (stored.tensors().contains("tf32")) {  // older files do not say
    uint8_t tf32 = 0;
    read(stored, "tf32", StoredType::u8, {1}, &tf32);
    out.precision = tf32 != 0 ? "tf32" : "fp32";
  }
  return out;
}

void save_finished(const fs::path& file, const ModelSpec& network, const Finished& finished) {
  std::vector<TensorToWrite> tensors;
  append(tensors, Layout(network), finished.parameters, "");
  const auto numbers = std::bit_cast<Numbers>(finished.record);
  append_progress(tensors, finished.step, numbers);
  write_safetensors(file, tensors);
}

std::optional<Finished> load_finished(const fs::path& file, const TrialSpec& trial) {
  if (!fs::exists(file)) return {};
  const SafetensorsFile stored(file);
  Finished out;
  out.parameters = read_weights(stored, trial.network, Layout(trial.network));
  if (!stored.tensors().contains("step")) return out;  // older files of trials on fresh data do not say
  read(stored, "step", StoredType::i64, {1}, &out.step);
  out.record = read_record(stored, out.step, trial.protocol.window);
  return out;
}

std::vector<float> load_weights(const fs::path& file, const ModelSpec& network) {
  return read_weights(SafetensorsFile(file), network, Layout(network));
}

}  // namespace rankscope
