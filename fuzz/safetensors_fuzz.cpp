// Any bytes as a .safetensors file: refused with an Error, or every tensor lies inside the file, as large as
// its shape says, and no two of them share a byte.
#include "checkpoint/safetensors.h"
#include "support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  fuzz::reading([&] {
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
  });
  return 0;
}

// The header as JSON, with its length in front of it put right again.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  using namespace rankscope::fuzz;
  if (seed % 4 == 0 || size < 8) return LLVMFuzzerMutate(data, size, most);
  size_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= size_t{data[i]} << (8 * i);
  if (length > size - 8) return LLVMFuzzerMutate(data, size, most);
  std::string header(text_of(data + 8, length)), rest(text_of(data + 8 + length, size - 8 - length));
  if (!JsonMutator(seed, most - size + length).mutate(header)) return LLVMFuzzerMutate(data, size, most);
  for (size_t i = 0; i < 8; ++i) data[i] = static_cast<uint8_t>(header.size() >> (8 * i));
  std::copy(header.begin(), header.end(), data + 8);
  std::copy(rest.begin(), rest.end(), data + 8 + header.size());
  return 8 + header.size() + rest.size();
}
