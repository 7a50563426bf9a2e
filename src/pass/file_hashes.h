// Hashes of the files behind a scan. They take as long as reading the files, so they are made beside the
// pass, and a file that has not changed is hashed once in a process.
#pragma once

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace rankscope {

/// Hashes files on threads of their own for as long as it lives: its end stops and waits for them, so that no
/// thread outlives the work it was started for.
class BackgroundHashes {
 public:
  explicit BackgroundHashes(const std::vector<std::filesystem::path>& files);
  ~BackgroundHashes();
  BackgroundHashes(const BackgroundHashes&) = delete;
  BackgroundHashes& operator=(const BackgroundHashes&) = delete;

 private:
  std::vector<std::jthread> threads_;
};

/// SHA-256 of the file, in hex: waits for the thread where one is at it, and hashes it here where none is.
std::string hash_of_file(const std::filesystem::path& file);

}  // namespace rankscope
