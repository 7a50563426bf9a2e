// Files that are read through a map of memory, and that somebody cuts short meanwhile: reading behind their
// new end is a signal (SIGBUS) and no error that could be thrown.
#pragma once

#include <cstddef>
#include <filesystem>

namespace rankscope {

/// From here on such a file ends the process with an error that names it, and not with a bare signal. For
/// programs: a library leaves signals alone.
void name_files_that_are_cut_short();

/// What is mapped where; of more than a few hundred files the names are not kept.
void keep_mapped(const std::byte* data, size_t size, const std::filesystem::path& path);
void forget_mapped(const std::byte* data);

}  // namespace rankscope
