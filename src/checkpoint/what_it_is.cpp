#include "checkpoint/what_it_is.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/find_models.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

bool begins_with(const fs::path& file, std::string_view magic) {
  std::ifstream in(file, std::ios::binary);
  std::string got(magic.size(), '\0');
  return in.read(got.data(), static_cast<std::streamsize>(got.size())) && got == magic;
}

// "bert-base-uncased", "sentence-transformers/all-MiniLM-L6-v2": letters, digits, - _ . and at most one
// slash.
bool looks_like_a_hub_name(const std::string& name) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return !name.empty() && name.front() != '/' && name.front() != '.' && name.back() != '/' &&
         std::all_of(name.begin(), name.end(), fits) && std::count(name.begin(), name.end(), '/') <= 1;
}

// An address is a name, too: https://HOST/bert-base-uncased/tree/main.
std::string without_host(const std::string& path) {
  const size_t scheme = path.find("://"), host = path.find('/', scheme == path.npos ? scheme : scheme + 3);
  if (scheme == path.npos || host == path.npos) return path;
  const std::string name = path.substr(host + 1);
  const size_t tree = std::min(name.find("/tree/"), name.find("/blob/"));
  return name.substr(0, tree);
}

Error missing(const std::string& path) {
  const Error error = Error("there is no such folder").in(path);
  const std::string name = without_host(path);
  if (!looks_like_a_hub_name(name)) return Error(error).hint("check the path");
  const std::string folder = name.substr(name.find('/') + 1);
  return Error(error).hint(fmt::format(
      "check the path; a name on a hub is downloaded first: hf download {} --local-dir {}", name, folder));
}

Error gguf(const std::string& path) {
  return Error("this is a GGUF file: quantized weights for llama.cpp, in a format that is not read here")
      .in(path)
      .hint("use the Hugging Face folder it was made from: config.json and *.safetensors");
}

Error a_file(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored))  // a pipe would be waited for
    return Error("expected the folder of a checkpoint, but this is neither a folder nor a file")
        .in(path.string())
        .hint("give the folder that holds config.json");
  const std::string ending = path.extension().string();
  if (ending == ".gguf" || begins_with(path, "GGUF")) return gguf(path.string());
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  if (ending == ".safetensors")
    return Error("these are the weights of a model, and its config.json is needed, too")
        .in(path.string())
        .hint(fmt::format("give the folder: {}", folder));
  if (ending == ".bin" || ending == ".pt" || ending == ".pth" || ending == ".ckpt")
    return Error("this is a PyTorch file, which can run code when it is read")
        .in(path.string())
        .hint(
            "save the model with model.save_pretrained(FOLDER, safe_serialization=True) and give that "
            "folder");
  return Error("expected the folder of a checkpoint, but got a file")
      .in(path.string())
      .hint("give the folder that holds config.json");
}

Error a_folder(const fs::path& path) {
  std::set<std::string> endings;
  std::error_code ignored, refused;
  size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(path, refused)) {
    if (++seen > 10'000) break;
    if (entry.is_regular_file(ignored)) endings.insert(entry.path().extension().string());
  }
  std::vector<std::string> models;
  for (const fs::path& model : models_below(path)) models.push_back(printable(model.string(), 400));
  if (models.size() > 1) {
    const size_t shown = std::min<size_t>(models.size(), 4);
    return Error(fmt::format("this folder holds {} models, and it is not clear which one is meant",
                             models.size()))
        .in(path.string())
        .hint(fmt::format(
            "{}{}", fmt::join(models.begin(), models.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
            shown < models.size() ? ", ..." : ""));
  }
  if (refused) return Error(fmt::format("cannot read the folder: {}", refused.message())).in(path.string());
  if (seen == 0) return Error("this folder is empty").in(path.string()).hint("check the path");
  if (endings.contains(".gguf")) return gguf(path.string());
  const Error error = Error("there is no config.json").in(path.string());
  if (endings.contains(".safetensors"))
    return Error(error).hint("the weights are there: add the config.json they were published with");
  if (endings.contains(".h5") || endings.contains(".msgpack"))
    return Error(error).hint(
        "weights of TensorFlow or Flax: load them with from_pretrained(FOLDER, from_tf=True or "
        "from_flax=True) "
        "and save with model.save_pretrained(FOLDER)");
  return Error(error).hint(
      "give the folder of a Hugging Face checkpoint, or save one with model.save_pretrained(FOLDER)");
}

}  // namespace

Error not_a_checkpoint(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return missing(path.string());
  return fs::is_directory(path, ignored) ? a_folder(path) : a_file(path);
}

}  // namespace rankscope
