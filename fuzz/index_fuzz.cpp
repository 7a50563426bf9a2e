// Any text as a model.safetensors.index.json beside two shards: refused with an Error, or every tensor lies
// in a file of the folder that holds it.
#include "checkpoint/safetensors.h"
#include "json_mutator.h"

namespace {

std::string shard(const std::string& tensor) {
  const std::string header = R"({")" + tensor + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string out(8, '\0');
  out[0] = static_cast<char>(header.size());
  return out + header + std::string(4, '\0');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  static const fuzz::Scratch folder;
  static const bool ready = [] {
    folder.put("a.safetensors", shard("x"));
    folder.put("b.safetensors", shard("y"));
    return true;
  }();
  fuzz::reading([&] {
    folder.put("model.safetensors.index.json", fuzz::text_of(data, size));
    const TensorStore store(folder.path());
    for (const auto& [name, located] : store.tensors())
      if (!ready || located.file->bytes(*located.entry).size() != 4 || store.find(name) == nullptr)
        std::abort();
  });
  return 0;
}
