#include "importance/side_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/suggest.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestTogether = 256u << 20;
constexpr size_t kNamed = 4;  // in one note

const std::set<std::string> kNames{
    "config.json", "generation_config.json",
    // tokenizers
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "vocab.txt", "merges.txt", "normalizer.json", "tokenizer.model", "spiece.model", "spm.model",
    "sentencepiece.model", "sentencepiece.bpe.model", "tekken.json",
    // what prepares other inputs
    "preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json"};
constexpr const char* kBeginnings[] = {"README", "LICENSE",    "LICENCE",
                                       "NOTICE", "USE_POLICY", "chat_template."};

// What nobody misses in the new folder: it has weights of its own.
bool is_weights(const fs::path& file) {
  const std::set<std::string> endings{".safetensors", ".bin",     ".pt",   ".pth",
                                      ".h5",          ".msgpack", ".onnx", ".gguf"};
  return endings.count(file.extension().string()) > 0 || file.filename().string().ends_with(".index.json");
}

bool lies_below(const fs::path& file, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return end == folder.end() && rest != file.end();
}

// `file` and `model` hold no links any more, and the folder of blobs is none. In a hub's cache the model may
// lie some folders below snapshots/HASH.
bool belongs_to(const fs::path& file, const fs::path& model) {
  if (lies_below(file, model)) return true;
  for (fs::path at = model; at.has_relative_path(); at = at.parent_path())
    if (const fs::path above = at.parent_path(); above.filename() == "snapshots")
      return lies_below(file, above.parent_path() / "blobs");
  return false;
}

void add_note(std::vector<std::string> names, const char* why, std::vector<std::string>& notes) {
  if (names.empty()) return;
  const size_t more = names.size() - std::min(names.size(), kNamed);
  names.resize(names.size() - more);
  notes.push_back(fmt::format("--write leaves out {}{}: {}", fmt::join(names, ", "),
                              more > 0 ? fmt::format(" and {} more", more) : "", why));
}

// Files of the folder, links among them, by name.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code fault;
  for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored)) out.push_back(entry->path());
  }
  if (fault) throw Error(fmt::format("cannot read the folder: {}", fault.message())).in(folder.string());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

bool is_side_file(const std::string& name) {
  return kNames.count(name) > 0 || std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                                               [&](const char* start) { return name.starts_with(start); });
}

SideFiles side_files(const fs::path& model) {
  std::error_code fault;
  const fs::path folder = fs::canonical(model, fault);
  if (fault) throw Error(fmt::format("cannot read the folder: {}", fault.message())).in(model.string());
  SideFiles out;
  std::vector<std::string> unknown, linked, odd, large;
  uint64_t together = 0;
  for (const fs::path& file : files_in(folder)) {
    const std::string name = file.filename().string(), shown = printable(name);
    if (name.starts_with('.') || is_weights(file)) continue;
    if (!is_side_file(name)) {
      unknown.push_back(shown);
      continue;
    }
    const fs::path from = fs::canonical(file, fault);
    if (fault || !belongs_to(from, folder)) {
      linked.push_back(shown);
      continue;
    }
    const bool regular = fs::is_regular_file(from, fault);
    const uint64_t size = regular ? fs::file_size(from, fault) : 0;
    if (!regular || fault) {
      odd.push_back(shown);
    } else if (size > std::min(kLargestSideFile, kLargestTogether - together)) {
      large.push_back(shown);
    } else {
      together += size;
      out.files.push_back({name, from});
    }
  }
  const auto config = std::find_if(out.files.begin(), out.files.end(),
                                   [](const SideFile& f) { return f.name == "config.json"; });
  if (config == out.files.end())
    throw Error("this is no file of the model's folder that could be copied")
        .in((model / "config.json").string())
        .hint(fmt::format("cp -rL {} COPY puts files in the place of links",
                          to_copy(model.string(), "FOLDER")));
  std::rotate(config, config + 1, out.files.end());
  add_note(linked, "links that lead out of the model's folder are not followed", out.notes);
  add_note(odd, "only regular files are copied", out.notes);
  add_note(large, "files beside the weights are copied up to 64 MiB, and 256 MiB together", out.notes);
  add_note(unknown, "only what belongs to a model and its tokenizer is copied", out.notes);
  return out;
}

}  // namespace rankscope
