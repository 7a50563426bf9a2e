// A record is its length, the masked checksum of the length, a protocol buffer of type tensorflow.Event, and
// the masked checksum of that; all numbers little-endian. Fields used: Event.wall_time = 1 (double),
// step = 2, file_version = 3, summary = 5; Summary.value = 1; Value.tag = 1, simple_value = 2 (float).
#include "sweep/tensorboard.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "base/files.h"
#include "base/held_folder.h"
#include "base/json.h"

namespace rankscope {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? 0x82F63B78u : 0u);
    table[i] = c;
  }
  return table;
}

template <class T>
void append_number(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i));
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_bytes(std::string& out, char tag, std::string_view bytes) {
  out += tag;
  append_varint(out, bytes.size());
  out += bytes;
}

constexpr uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xA282EAD8u; }

void append_record(std::string& out, const std::string& event) {
  std::string length;
  append_number<uint64_t>(length, event.size());
  out += length;
  append_number(out, masked(crc32c(length)));
  out += event;
  append_number(out, masked(crc32c(event)));
}

std::string event_at(double wall_time) {
  std::string event("\x09");
  append_number(event, std::bit_cast<uint64_t>(wall_time));
  return event;
}

std::string scalars(const Json& line, double wall_time) {
  std::string summary;
  for (const auto& [name, value] : line.items()) {
    if (name == "step" || !value.is_number()) continue;
    std::string entry;
    append_bytes(entry, '\x0A', name);
    entry += '\x15';
    append_number(entry, std::bit_cast<uint32_t>(value.get<float>()));
    append_bytes(summary, '\x0A', entry);
  }
  std::string event = event_at(wall_time);
  event += '\x10';
  append_varint(event, static_cast<uint64_t>(line.at("step").get<int64_t>()));
  append_bytes(event, '\x2A', summary);
  return event;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t c = ~0u;
  for (const char byte : bytes) c = kTable[(c ^ static_cast<unsigned char>(byte)) & 0xFF] ^ (c >> 8);
  return ~c;
}

std::string event_records(std::string_view curve_jsonl, double wall_time) {
  std::string out, first = event_at(wall_time);
  append_bytes(first, '\x1A', "brain.Event:2");
  append_record(out, first);
  while (!curve_jsonl.empty()) {
    const size_t end = curve_jsonl.find('\n');
    if (end == std::string_view::npos) break;
    const Json line = parse_json(curve_jsonl.substr(0, end), "curve.jsonl");
    if (line.is_object() && line.contains("step") && line.at("step").is_number_integer())
      append_record(out, scalars(line, wall_time));
    curve_jsonl.remove_prefix(end + 1);
  }
  return out;
}

bool write_events(const std::filesystem::path& study_folder, const std::string& id, double wall_time) {
  const HeldFolder store(study_folder);
  if (!store.has_file({"trials", id, "curve.jsonl"})) return false;
  const std::filesystem::path curve = study_folder / "trials" / id / "curve.jsonl";
  const std::filesystem::path folder = store.make({"tensorboard", id});
  write_file(folder / fmt::format("events.out.tfevents.{:.0f}.rankscope", wall_time),
             event_records(read_file(curve), wall_time));
  return true;
}

}  // namespace rankscope
