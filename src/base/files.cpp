#include "base/files.h"
#include "base/cut_short.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

Error io_error(const char* action, const fs::path& path) {
  const int code = errno;
  Error error(fmt::format("cannot {}: {}", action, std::strerror(code)));
  error = std::move(error).in(path.string());
  if (code == ENOENT) return std::move(error).hint("check the path");
  if (code == EACCES) return std::move(error).hint("check the permissions");
  if (code == EFBIG) return std::move(error).hint("ulimit -f sets how large a file may become");
  if (code == ENOSPC) return std::move(error).hint("free some disk space or choose another --out");
  return error;
}

// Not blocking: a pipe of that name would be waited for until somebody writes into it.
int open_to_read(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) throw io_error("open the file", path);
  return fd;
}

size_t regular_size(int fd, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) throw io_error("read the file", path);
  if (!S_ISREG(info.st_mode)) throw Error("this is not a regular file").in(path.string());
  return static_cast<size_t>(info.st_size);
}

fs::path folder_of(const fs::path& path) { return path.parent_path().empty() ? "." : path.parent_path(); }

// A file without a name: whatever ends the process, nothing of it is left. Not every file system has that.
int open_nameless(const fs::path& path) {
  return ::open(folder_of(path).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644);
}

// Nobody else's file: a link or a leftover of that name is removed, never written through.
int open_beside(const fs::path& part) {
  ::unlink(part.c_str());
  return ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

// What processes of this machine left that were killed while they put their file in the place of `path`.
void remove_leftovers(const fs::path& path) {
  const std::string prefix = path.filename().string() + ".part";
  std::error_code ignored;
  for (fs::directory_iterator entry(folder_of(path), ignored), end; entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    pid_t pid = 0;
    const auto [rest, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), pid);
    if (error == std::errc() && rest == name.data() + name.size() && pid > 0 && ::kill(pid, 0) != 0 &&
        errno == ESRCH)
      ::unlink(entry->path().c_str());
  }
}

// Gives a nameless file the name `path`. Where there is one already, it goes by way of `part`: a process that
// is killed between the two leaves that behind, whole.
bool give_name(int fd, const fs::path& path, const fs::path& part) {
  const std::string self = fmt::format("/proc/self/fd/{}", fd);
  const auto link_to = [&](const fs::path& to) {
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (link_to(path)) return true;
  if (errno != EEXIST) return false;
  remove_leftovers(path);
  ::unlink(part.c_str());
  if (!link_to(part)) return false;
  if (::rename(part.c_str(), path.c_str()) == 0) return true;
  const int why = errno;
  ::unlink(part.c_str());
  errno = why;
  return false;
}

}  // namespace

std::string read_file(const fs::path& path, uint64_t limit) {
  const Descriptor file{open_to_read(path)};
  const size_t size = regular_size(file.fd, path);
  if (size > limit)
    throw Error(fmt::format("the file has {} bytes, more than the {} allowed here", size, limit))
        .in(path.string());
  std::string out(size, '\0');
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::read(file.fd, out.data() + done, size - done);
    if (got < 0) throw io_error("read the file", path);
    if (got == 0) throw Error("the file ended early").in(path.string());
    done += static_cast<size_t>(got);
  }
  return out;
}

FileWriter::FileWriter(const fs::path& path)
    : path_(path), part_(path.string() + fmt::format(".part{}", ::getpid())), fd_(open_nameless(path)) {
  nameless_ = fd_ >= 0;
  if (!nameless_) fd_ = open_beside(part_);
  if (fd_ < 0) throw io_error("write the file", path_);
}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;  // committed
  ::close(fd_);
  if (!nameless_) ::unlink(part_.c_str());
}

void FileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw io_error("write the file", path_);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void FileWriter::commit() {
  if (::fsync(fd_) != 0) throw io_error("write the file", path_);
  const bool named = nameless_ ? give_name(fd_, path_, part_) : ::rename(part_.c_str(), path_.c_str()) == 0;
  if (!named) throw io_error("write the file", path_);
  ::close(fd_);
  fd_ = -1;
}

void write_file(const fs::path& path, std::string_view content) {
  FileWriter file(path);
  file.write(content);
  file.commit();
}

void remove_file(const fs::path& path) {
  remove_leftovers(path);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw io_error("remove the file", path);
}

MappedFile::MappedFile(const fs::path& path) : path_(path) {
  const Descriptor file{open_to_read(path)};
  size_ = regular_size(file.fd, path);
  if (size_ == 0) return;
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) throw io_error("map the file", path);
  data_ = static_cast<const std::byte*>(data);
  keep_mapped(data_, size_, path);
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget_mapped(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(size_t offset, size_t length) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t first = offset / page * page;
  const size_t last = std::min(size_, offset + length);
  // Pages at the edges may belong to a neighbour too; dropping them only costs a second read.
  if (data_ != nullptr && first < last)
    ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

}  // namespace rankscope
