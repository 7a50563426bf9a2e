// A reader's fuzzer without libFuzzer, for `make test`: every kept input, then changes of them from a fixed
// seed. It is built by the compiler of everything else, so it needs no clang and takes seconds; it neither
// measures coverage nor looks at memory, which `make fuzz` does.
//
//   replay_NAME RUNS [SEEDS]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

using Bytes = std::vector<uint8_t>;

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
}

namespace {

constexpr size_t kMost = 8192;  // as fuzz/run.sh has it
std::minstd_rand chance(1);     // NOLINT: what is found is found again

size_t below(size_t n) { return n == 0 ? 0 : chance() % n; }

std::vector<Bytes> kept_inputs(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Bytes> inputs;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return inputs;
}

void change(Bytes& input) {
  const size_t size = std::min(input.size(), kMost);
  input.resize(kMost);
  const size_t now = LLVMFuzzerCustomMutator != nullptr
                         ? LLVMFuzzerCustomMutator(input.data(), size, kMost, static_cast<unsigned>(chance()))
                         : LLVMFuzzerMutate(input.data(), size, kMost);
  input.resize(now);
}

}  // namespace

// One change of bytes: a flipped bit, another byte, one more, a piece left out or repeated.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most) {
  if (size == 0) {
    if (most > 0) data[0] = static_cast<uint8_t>(chance());
    return std::min<size_t>(most, 1);
  }
  const size_t at = below(size), length = 1 + below(std::min<size_t>(size - at, 16));
  switch (below(5)) {
    case 0:
      data[at] = static_cast<uint8_t>(data[at] ^ (1u << below(8)));
      return size;
    case 1:
      data[at] = static_cast<uint8_t>(chance());
      return size;
    case 2:
      if (size == most) return size;
      std::move_backward(data + at, data + size, data + size + 1);
      data[at] = static_cast<uint8_t>(chance());
      return size + 1;
    case 3:
      std::move(data + at + length, data + size, data + at);
      return size - length;
    default:
      if (size + length > most) return size;
      std::move_backward(data + at, data + size, data + size + length);
      return size + length;
  }
}

int main(int argc, char** argv) {
  const long runs = argc > 1 ? std::atol(argv[1]) : 1000;
  std::vector<Bytes> inputs;
  if (argc > 2) inputs = kept_inputs(argv[2]);
  inputs.emplace_back();
  for (const Bytes& input : inputs) LLVMFuzzerTestOneInput(input.data(), input.size());
  for (long i = 0; i < runs; ++i) {
    Bytes input = inputs[below(inputs.size())];
    for (size_t changes = 1 + below(4); changes > 0; --changes) change(input);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu kept inputs, the empty one and %ld changes of them were read or refused\n",
              inputs.size() - 1, runs);
  return 0;
}
