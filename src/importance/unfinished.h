// The mark of a folder into which a model is being written: a file "unfinished.partPID" with the names of
// what is written beside it, one a line. Where no such process runs any more it was killed, and what lies
// there may be part of a model. The next run may remove files of these names, and no others.
//
// All of it stands here: the command asks before it loads the engine.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string>

namespace rankscope {

inline const std::string kUnfinished = "unfinished.part";
constexpr uint64_t kLargestMark = 1u << 20;

/// Whether a killed process left its mark in this folder, and none that runs has one there.
inline bool was_left_unfinished(const std::filesystem::path& folder) {
  bool marked = false;
  std::error_code fault;
  for (std::filesystem::directory_iterator entry(folder, fault), end; !fault && entry != end;
       entry.increment(fault)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kUnfinished)) continue;
    pid_t pid = 0;
    std::from_chars(name.data() + kUnfinished.size(), name.data() + name.size(), pid);
    if (pid <= 0) continue;
    if (pid != ::getpid() && (::kill(pid, 0) == 0 || errno != ESRCH)) return false;
    marked = true;
  }
  return marked;
}

}  // namespace rankscope
