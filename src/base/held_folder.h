// A folder held by its descriptor: it stays the same folder wherever it is moved, and what lies beneath it is
// reached step by step, without following a link out of it. For folders that others may have filled.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rankscope {

class HeldFolder {
 public:
  explicit HeldFolder(const std::filesystem::path& path);
  ~HeldFolder();
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;

  /// False when it was moved or removed, also if another folder has taken its place.
  bool still_at_its_path() const;

  /// The folder of these names beneath this one, made where it is missing; every name is one step. A link on
  /// the way is an error, and so is anything in that folder that is neither a file nor a folder: a store has
  /// no use for links, and whoever writes through one writes elsewhere.
  std::filesystem::path make(const std::vector<std::string>& names) const;

  /// A regular file is there, and no link leads to it.
  bool has_file(const std::vector<std::string>& names) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace rankscope
