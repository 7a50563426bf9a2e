// The safetensors format: an 8-byte little-endian header length, a JSON header, then raw data.
// The file is not trusted: every offset, shape and type is checked before anything is read. Knows nothing of
// torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace rankscope {

enum class StoredType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };
size_t size_of(StoredType type);
std::string_view to_string(StoredType type);  // "F32", as in the header

struct TensorEntry {
  StoredType type{};
  std::vector<int64_t> shape;
  size_t begin = 0, end = 0;  // bytes in the file
  int64_t elements() const;
};

/// The checked header: names, types, shapes, byte ranges. `head` is the start of the file, or all of it; the
/// 8 bytes of length and the header must be in it. `place` is named in errors.
std::map<std::string, TensorEntry> parse_safetensors_header(std::span<const std::byte> head,
                                                            uint64_t file_size, const std::string& place);

/// One mapped file.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  const std::map<std::string, TensorEntry>& tensors() const { return tensors_; }
  /// Not necessarily aligned: early writers did not pad the header. Copy out of it, do not cast.
  std::span<const std::byte> bytes(const TensorEntry& entry) const;
  void release(const TensorEntry& entry) const;
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  MappedFile file_;
  std::map<std::string, TensorEntry> tensors_;
};

/// All files of a checkpoint folder: model.safetensors, the shards its index names, or else the one
/// *.safetensors file there is (model.fp16.safetensors), an adapter's apart.
class TensorStore {
 public:
  struct Located {
    const SafetensorsFile* file;
    const TensorEntry* entry;
  };
  explicit TensorStore(const std::filesystem::path& folder);
  const Located* find(const std::string& name) const;
  const std::map<std::string, Located>& tensors() const { return tensors_; }
  const std::vector<std::unique_ptr<SafetensorsFile>>& files() const { return files_; }

 private:
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Located> tensors_;
};

/// What `write_safetensors` stores; `data` must hold elements * size_of(type) bytes.
struct TensorToWrite {
  std::string name;
  StoredType type;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};
/// A file whose tensors come one after the other, in pieces of any size: what `tensors` says of names, types
/// and shapes is promised, its data is not read. The file is there whole after `commit`, or not at all.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors);
  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  std::filesystem::path path_;
  uint64_t left_ = 0;  // bytes promised and not written yet
  FileWriter file_;
};

/// Whole or absent, like write_file. Tensors are sorted (wide types first, then by name) so that all are
/// aligned.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors);

}  // namespace rankscope
