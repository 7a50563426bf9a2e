// The arrays beside a result table, as safetensors.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "base/array.h"

namespace rankscope {

constexpr const char* kArraysFile = "arrays.safetensors";
constexpr const char* kTokenMapsFile = "token_maps.safetensors";

void write_arrays(const std::filesystem::path& file, std::span<const NamedArray> arrays);

/// The float32 tensors of the file; none where there is no such file.
std::vector<NamedArray> read_arrays(const std::filesystem::path& file);

}  // namespace rankscope
