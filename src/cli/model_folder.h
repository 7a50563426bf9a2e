// The folder of a model, as people name it: the model itself, or the folder around it.
#pragma once

#include <filesystem>
#include <string>

#include "cli/command.h"

namespace rankscope {

/// `given`, or the one model that lies below it (checkpoint/find_models.h). Says so on io.err. What is no
/// model at all comes back as it is: whoever opens it says what it is instead.
std::filesystem::path model_folder(const std::filesystem::path& given, Io& io);

}  // namespace rankscope
