// Hashes of the files behind a scan. They take as long as reading the files, so they are made beside the
// pass, and a file that has not changed is hashed once in a process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rankscope {

/// Begins to hash the files on a thread of its own.
void hash_in_background(const std::vector<std::filesystem::path>& files);

/// SHA-256 of the file, in hex: waits for the thread where one is at it.
std::string hash_of_file(const std::filesystem::path& file);

}  // namespace rankscope
