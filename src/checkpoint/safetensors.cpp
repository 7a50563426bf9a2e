#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "checkpoint/header_reader.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;

const StoredTypeName& row_of(StoredType type) {
  return *std::find_if(std::begin(kStoredTypes), std::end(kStoredTypes),
                       [&](const StoredTypeName& t) { return t.type == type; });
}

// Product of the sizes times the size of one element, or nothing if it does not fit.
std::optional<uint64_t> byte_count(StoredType type, const std::vector<int64_t>& shape) {
  uint64_t bytes = size_of(type);
  // A zero anywhere makes the tensor empty, however large its neighbours are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const int64_t n : shape)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes)) return std::nullopt;
  return bytes;
}

uint64_t header_length(std::span<const std::byte> head, uint64_t file_size, const std::string& place) {
  if (file_size < kLengthBytes || head.size() < kLengthBytes)
    throw Error(fmt::format("the file has {} bytes, too few for a safetensors header", file_size))
        .in(place)
        .hint("download the file again");
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(head[i]) << (8 * i);
  constexpr std::string_view kPointer = "version ";  // how such a file begins
  if (std::equal(kPointer.begin(), kPointer.end(), head.begin(), [](char a, std::byte b) {
        return static_cast<unsigned char>(a) == std::to_integer<unsigned>(b);
      }))
    throw Error("this is what Git LFS leaves in place of the file")
        .in(place)
        .hint("git lfs pull, or download the file itself");
  if (length == 0) throw Error("the header's length is 0").in(place + ", byte 0");
  if (length > file_size - kLengthBytes)
    throw Error(
        fmt::format("the header's length is {}, but only {} bytes follow", length, file_size - kLengthBytes))
        .in(place + ", byte 0")
        .hint("download the file again: it is cut short or not a safetensors file");
  if (length > kMaxHeader)
    throw Error(fmt::format("the header's length is {}, more than the {} allowed", length, kMaxHeader))
        .in(place + ", byte 0");
  if (length > head.size() - kLengthBytes) throw Error("the header is cut short").in(place);
  return length;
}

TensorEntry checked(const HeaderReader::Draft& draft, uint64_t data_begin, uint64_t file_size,
                    const std::string& at) {
  for (const auto& [present, key] : {std::pair{draft.type.has_value(), "dtype"},
                                     {draft.shape.has_value(), "shape"},
                                     {draft.offsets.has_value(), "data_offsets"}})
    if (!present) throw Error(fmt::format("the key \"{}\" is missing", key)).in(at);
  if (draft.offsets->size() != 2)
    throw Error(fmt::format("expected 2 data_offsets, but got {}", draft.offsets->size())).in(at);
  const auto begin = static_cast<uint64_t>((*draft.offsets)[0]),
             end = static_cast<uint64_t>((*draft.offsets)[1]);
  const uint64_t data_size = file_size - data_begin;
  if (begin > end) throw Error(fmt::format("its data ends at {} before it begins at {}", end, begin)).in(at);
  if (end > data_size)
    throw Error(fmt::format("its data ends at byte {}, but the file has {}", data_begin + end, file_size))
        .in(at)
        .hint("download the file again: it is cut short");
  const auto bytes = byte_count(*draft.type, *draft.shape);
  if (!bytes || *bytes != end - begin)
    throw Error(fmt::format("shape {} of {} needs {} bytes, but its offsets hold {}", *draft.shape,
                            to_string(*draft.type), bytes ? std::to_string(*bytes) : "too many", end - begin))
        .in(at);
  return {*draft.type, *draft.shape, data_begin + begin, data_begin + end};
}

// The data must be used exactly once: bytes that belong to two tensors or to none are where a crafted file
// hides.
void check_cover(const std::map<std::string, TensorEntry>& tensors, uint64_t data_begin, uint64_t file_size,
                 const std::string& place) {
  std::vector<const std::pair<const std::string, TensorEntry>*> order;
  for (const auto& item : tensors) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  uint64_t used = data_begin;
  std::string before;
  for (const auto* item : order) {
    const uint64_t begin = item->second.begin;
    const std::string at = fmt::format("{}, tensor \"{}\", byte {}", place, printable(item->first), begin);
    if (begin < used) throw Error(fmt::format("its data overlaps that of \"{}\"", printable(before))).in(at);
    if (begin > used)
      throw Error(fmt::format("the {} bytes before it belong to no tensor", begin - used)).in(at);
    used = item->second.end;
    before = item->first;
  }
  if (used < file_size)
    throw Error(fmt::format("the last {} bytes belong to no tensor", file_size - used))
        .in(fmt::format("{}, byte {}", place, used));
}

}  // namespace

size_t size_of(StoredType type) { return row_of(type).size; }
std::string_view to_string(StoredType type) { return row_of(type).name; }

int64_t TensorEntry::elements() const { return static_cast<int64_t>((end - begin) / size_of(type)); }

std::map<std::string, TensorEntry> parse_safetensors_header(std::span<const std::byte> head,
                                                            uint64_t file_size, const std::string& place) {
  const uint64_t length = header_length(head, file_size, place);
  const auto* text = reinterpret_cast<const char*>(head.data()) + kLengthBytes;
  HeaderReader reader(place);
  Json::sax_parse(text, text + length, &reader);

  std::map<std::string, TensorEntry> tensors;
  for (const auto& [name, draft] : reader.take())
    tensors.emplace(name, checked(draft, kLengthBytes + length, file_size,
                                  fmt::format("{}, tensor \"{}\"", place, printable(name))));
  check_cover(tensors, kLengthBytes + length, file_size, place);
  return tensors;
}

SafetensorsFile::SafetensorsFile(const fs::path& path)
    : file_(path), tensors_(parse_safetensors_header(file_.bytes(), file_.bytes().size(), path.string())) {}

std::span<const std::byte> SafetensorsFile::bytes(const TensorEntry& entry) const {
  return file_.bytes().subspan(entry.begin, entry.end - entry.begin);
}

void SafetensorsFile::release(const TensorEntry& entry) const {
  file_.release(entry.begin, entry.end - entry.begin);
}

namespace {

bool present(const fs::path& path) {
  std::error_code ignored;  // an unreadable folder is reported by the open that follows
  return fs::exists(path, ignored);
}

// Shard names come from the index: a name that leaves the folder is an attack or a mistake.
fs::path shard_path(const fs::path& folder, const std::string& shard, const std::string& at) {
  const bool plain = !shard.empty() && shard.find('/') == std::string::npos &&
                     shard.find('\\') == std::string::npos && shard.find('\0') == std::string::npos;
  if (!plain || !shard.ends_with(".safetensors"))
    throw Error(fmt::format("\"{}\" is not the name of a .safetensors file in this folder", printable(shard)))
        .in(at);
  return folder / shard;
}

// The *.safetensors files of a folder that could be a whole model, an adapter's left out.
std::vector<fs::path> other_weights(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code fault;
  for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".safetensors") && !name.starts_with("adapter_")) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

[[noreturn]] void refuse_folder(const fs::path& folder, size_t candidates) {
  if (present(folder / "pytorch_model.bin") || present(folder / "pytorch_model.bin.index.json"))
    throw Error("the weights are in the .bin format, which can run code when it is read")
        .in(folder.string())
        .hint(fmt::format(
            "python -c \"import glob, torch, safetensors.torch as s; w = {{}}; [w.update(torch.load(f, "
            "weights_only=True)) for f in glob.glob('{0}pytorch_model*.bin')]; s.save_file({{k: "
            "v.clone() for k, v in w.items()}}, '{0}model.safetensors')\"",
            to_copy((folder / "").string(), "FOLDER/")));
  if (candidates > 1)
    throw Error(
        fmt::format("there is no model.safetensors, and which of the {} other .safetensors files is the "
                    "model is not clear",
                    candidates))
        .in(folder.string())
        .hint("call it model.safetensors, or add model.safetensors.index.json");
  throw Error("there is no model.safetensors and no model.safetensors.index.json")
      .in(folder.string())
      .hint(present(folder / "config.json")
                ? fmt::format("download the weights, too; without them: rankscope scan --init {}",
                              to_copy((folder / "config.json").string(), "FOLDER/config.json"))
                : "give the folder of a Hugging Face checkpoint");
}

}  // namespace

TensorStore::TensorStore(const fs::path& folder) {
  const auto open = [&](const fs::path& path) {
    files_.push_back(std::make_unique<SafetensorsFile>(path));
    return files_.back().get();
  };
  const fs::path index = folder / "model.safetensors.index.json";
  fs::path single = folder / "model.safetensors";
  if (!present(single) && !present(index)) {
    const std::vector<fs::path> others = other_weights(folder);
    if (others.size() != 1) refuse_folder(folder, others.size());
    single = others.front();
  }
  std::error_code ignored;
  if (present(single) ||
      fs::is_symlink(single, ignored)) {  // as the library does: a whole file goes before an index
    const SafetensorsFile* file = open(single);
    for (const auto& [name, entry] : file->tensors()) tensors_[name] = {file, &entry};
    return;
  }
  const Json json = read_json(index, 64 << 20);
  const Json& map = JsonObject(json, index.string()).at("weight_map");
  const JsonObject check(map, index.string() + ", weight_map");
  std::map<std::string, const SafetensorsFile*> shards;
  for (const auto& [name, value] : map.items()) {
    const std::string at = fmt::format("{}, tensor \"{}\"", index.string(), printable(name));
    if (!value.is_string())
      throw Error(fmt::format("expected a file name, but got {}", value.type_name())).in(at);
    const auto& shard = value.get_ref<const std::string&>();
    const SafetensorsFile*& file = shards[shard];
    if (file == nullptr) {
      const fs::path path = shard_path(folder, shard, at);
      if (!present(path))
        throw Error(fmt::format("the file {} is missing", printable(shard)))
            .in(at)
            .hint("download the missing file into the folder");
      file = open(path);
    }
    const auto entry = file->tensors().find(name);
    if (entry == file->tensors().end())
      throw Error(fmt::format("the index says it is in {}, but that file does not hold it", printable(shard)))
          .in(at);
    tensors_[name] = {file, &entry->second};
  }
  std::sort(files_.begin(), files_.end(), [](const auto& a, const auto& b) { return a->path() < b->path(); });
}

const TensorStore::Located* TensorStore::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

SafetensorsWriter::SafetensorsWriter(const fs::path& path, const std::vector<TensorToWrite>& tensors)
    : path_(path), file_(path) {
  Json header = Json::object();
  for (const TensorToWrite& t : tensors) {
    const std::string at = fmt::format("{}, tensor \"{}\"", path.string(), printable(t.name));
    if (header.contains(t.name) || t.name == "__metadata__") throw Error("this name is taken").in(at);
    const auto negative = [](int64_t n) { return n < 0; };
    const bool possible = std::none_of(t.shape.begin(), t.shape.end(), negative);
    const std::optional<uint64_t> bytes = possible ? byte_count(t.type, t.shape) : std::nullopt;
    if (!bytes) throw Error(fmt::format("there is no shape {}", t.shape)).in(at);
    const uint64_t end = left_ + *bytes;
    header[t.name] = {{"dtype", to_string(t.type)}, {"shape", t.shape}, {"data_offsets", {left_, end}}};
    left_ = end;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  std::string length(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) length[i] = static_cast<char>(text.size() >> (8 * i));
  file_.write(length);
  file_.write(text);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > left_) throw Error("more bytes than the shapes hold").in(path_.string());
  file_.write(bytes);
  left_ -= bytes.size();
}

void SafetensorsWriter::commit() {
  if (left_ > 0) throw Error(fmt::format("{} bytes of the tensors are missing", left_)).in(path_.string());
  file_.commit();
}

void write_safetensors(const fs::path& path, const std::vector<TensorToWrite>& tensors) {
  for (const TensorToWrite& t : tensors)
    if (std::any_of(t.shape.begin(), t.shape.end(), [](int64_t n) { return n < 0; }) ||
        byte_count(t.type, t.shape) != t.data.size())
      throw Error(
          fmt::format("shape {} of {} does not hold {} bytes", t.shape, to_string(t.type), t.data.size()))
          .in(fmt::format("{}, tensor \"{}\"", path.string(), printable(t.name)));
  std::vector<TensorToWrite> order = tensors;
  std::sort(order.begin(), order.end(), [](const TensorToWrite& a, const TensorToWrite& b) {
    return std::pair(-static_cast<int>(size_of(a.type)), std::string_view(a.name)) <
           std::pair(-static_cast<int>(size_of(b.type)), std::string_view(b.name));
  });
  SafetensorsWriter file(path, order);
  for (const TensorToWrite& t : order) file.write(t.data);
  file.commit();
}

}  // namespace rankscope
