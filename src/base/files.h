// Files: whole reads with a limit, memory maps that give pages back, and writes that are whole or absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace rankscope {

/// The whole file, or an error if it is missing, not a regular file, unreadable or larger than `limit` bytes.
std::string read_file(const std::filesystem::path& path, uint64_t limit = 1ull << 30);

/// Writes into a file without a name (beside `path` where the file system has none) and puts it in place: the
/// file is there whole or not at all, whatever ends the process. A full disk is an error.
void write_file(const std::filesystem::path& path, std::string_view content);

/// The same for content that comes in pieces: `commit` puts the file in its place, leaving without it leaves
/// nothing.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  std::filesystem::path path_, part_;
  int fd_ = -1;
  bool nameless_ = false;
};

/// Removes a file that is written so, with what a killed process left beside it.
void remove_file(const std::filesystem::path& path);

/// A read-only map of a file. Pages come in as they are touched; `release` gives them back.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  /// Drops the pages inside [offset, offset + length) from this process; touching them again reads the file.
  void release(size_t offset, size_t length) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace rankscope
