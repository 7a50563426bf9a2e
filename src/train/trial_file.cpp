#include "train/trial_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

using Numbers = std::array<double, sizeof(Record) / sizeof(double)>;
static_assert(sizeof(Record) % sizeof(double) == 0);

std::vector<TensorToWrite> weights_of(const Layout& layout, const std::vector<float>& parameters) {
  std::vector<TensorToWrite> out;
  for (const Slot& slot : layout.slots()) {
    const std::span<const float> values(parameters.data() + slot.offset,
                                        static_cast<size_t>(element_count(slot.parameter)));
    out.push_back({slot.parameter.name, StoredType::f32, slot.parameter.shape, std::as_bytes(values)});
  }
  return out;
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

std::vector<float> read_weights(const SafetensorsFile& file, const Layout& layout) {
  std::vector<float> out(static_cast<size_t>(layout.size()));
  for (const Slot& slot : layout.slots())
    read(file, slot.parameter.name, StoredType::f32, slot.parameter.shape, out.data() + slot.offset);
  return out;
}

}  // namespace

void save_trial(const fs::path& file, const NetworkSpec& network, const Saved& saved) {
  const auto& [state, record, precision] = saved;
  const Layout layout(network);
  std::vector<TensorToWrite> tensors = weights_of(layout, state.parameters);
  const auto numbers = std::bit_cast<Numbers>(record);
  const int64_t size = layout.size(), step = state.step;
  tensors.push_back({"adam.m", StoredType::f32, {size}, std::as_bytes(std::span(state.m))});
  tensors.push_back({"adam.v", StoredType::f32, {size}, std::as_bytes(std::span(state.v))});
  tensors.push_back({"step", StoredType::i64, {1}, std::as_bytes(std::span(&step, 1))});
  tensors.push_back(
      {"record", StoredType::f64, {static_cast<int64_t>(numbers.size())}, std::as_bytes(std::span(numbers))});
  const uint8_t tf32 = precision == "tf32" ? 1 : 0;
  if (!precision.empty())
    tensors.push_back({"tf32", StoredType::u8, {1}, std::as_bytes(std::span(&tf32, 1))});
  write_safetensors(file, tensors);
}

std::optional<Saved> load_trial(const fs::path& file, const NetworkSpec& network) {
  if (!fs::exists(file)) return {};
  const SafetensorsFile stored(file);
  const Layout layout(network);
  Saved out;
  out.state.parameters = read_weights(stored, layout);
  out.state.m.resize(static_cast<size_t>(layout.size()));
  out.state.v.resize(static_cast<size_t>(layout.size()));
  read(stored, "adam.m", StoredType::f32, {layout.size()}, out.state.m.data());
  read(stored, "adam.v", StoredType::f32, {layout.size()}, out.state.v.data());
  read(stored, "step", StoredType::i64, {1}, &out.state.step);
  Numbers numbers{};
  read(stored, "record", StoredType::f64, {static_cast<int64_t>(numbers.size())}, numbers.data());
  out.record = std::bit_cast<Record>(numbers);
  out.precision.clear();
  if (stored.tensors().contains("tf32")) {  // older files do not say
    uint8_t tf32 = 0;
    read(stored, "tf32", StoredType::u8, {1}, &tf32);
    out.precision = tf32 != 0 ? "tf32" : "fp32";
  }
  return out;
}

void save_weights(const fs::path& file, const NetworkSpec& network, const std::vector<float>& parameters) {
  write_safetensors(file, weights_of(Layout(network), parameters));
}

std::vector<float> load_weights(const fs::path& file, const NetworkSpec& network) {
  return read_weights(SafetensorsFile(file), Layout(network));
}

}  // namespace rankscope
