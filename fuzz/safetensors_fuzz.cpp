// Any bytes as a .safetensors file: refused with an Error, or every tensor lies inside the file, as large as
// its shape says, and no two of them share a byte.
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  try {
    size_t covered = 0;
    for (const auto& [name, entry] :
         parse_safetensors_header(std::as_bytes(std::span(data, size)), size, "fuzz")) {
      size_t bytes = size_of(entry.type);
      for (const int64_t n : entry.shape) bytes *= static_cast<size_t>(n);
      if (entry.begin > entry.end || entry.end > size || entry.end - entry.begin != bytes) std::abort();
      if (static_cast<size_t>(entry.elements()) * size_of(entry.type) != bytes) std::abort();
      covered += bytes;
    }
    if (covered > size) std::abort();
  } catch (const Error& error) {
    if (error.render().empty()) std::abort();
  }
  return 0;
}
