#include "base/held_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/descriptor.h"
#include "base/error.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Error not_plain(const fs::path& path, const char* what) {
  return Error(fmt::format("{} stands where a store has none", what))
      .in(path.string())
      .hint("look where it came from; remove it if it is yours");
}

Error cannot(const char* action, const fs::path& path) {
  return Error(fmt::format("cannot {}: {}", action, std::strerror(errno))).in(path.string());
}

// One step, by a name that is one: no "..", nothing with a slash.
void require_name(const std::string& name, const fs::path& path) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    throw Error(fmt::format("\"{}\" is no name of a file", printable(name))).in(path.string());
}

// Files and folders only; a link or a pipe that waits under the name of a file is refused.
void require_plain_entries(int folder, const fs::path& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(::dup(folder)), ::closedir);
  if (!entries) throw cannot("read the folder", path);
  while (const dirent* entry = ::readdir(entries.get())) {
    struct stat info {};
    if (::fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone meanwhile
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
      throw not_plain(path / entry->d_name, S_ISLNK(info.st_mode) ? "a link" : "something that is no file");
  }
}

}  // namespace

HeldFolder::HeldFolder(const fs::path& path)
    : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ < 0) throw cannot("open the folder", path);
}

HeldFolder::~HeldFolder() { ::close(fd_); }

bool HeldFolder::still_at_its_path() const {
  struct stat held {
  }, there{};
  return ::fstat(fd_, &held) == 0 && ::stat(path_.c_str(), &there) == 0 && held.st_dev == there.st_dev &&
         held.st_ino == there.st_ino;
}

fs::path HeldFolder::make(const std::vector<std::string>& names) const {
  fs::path path = path_;
  Descriptor at(::dup(fd_));
  for (const std::string& name : names) {
    require_name(name, path);
    path /= name;
    if (::mkdirat(at.fd, name.c_str(), 0777) != 0 && errno != EEXIST) throw cannot("make the folder", path);
    Descriptor next{::openat(at.fd, name.c_str(), kFolder)};
    if (next.fd < 0 && (errno == ELOOP || errno == ENOTDIR))
      throw not_plain(path, "a link or a file in place of a folder");
    if (next.fd < 0) throw cannot("open the folder", path);
    std::swap(at.fd, next.fd);
  }
  require_plain_entries(at.fd, path);
  return path;
}

bool HeldFolder::has_file(const std::vector<std::string>& names) const {
  Descriptor at(::dup(fd_));
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    require_name(names[i], path_);
    Descriptor next{::openat(at.fd, names[i].c_str(), kFolder)};
    if (next.fd < 0) return false;
    std::swap(at.fd, next.fd);
  }
  require_name(names.back(), path_);
  struct stat info {};
  return ::fstatat(at.fd, names.back().c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

}  // namespace rankscope
