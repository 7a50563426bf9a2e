// What the fuzzers share: a count of the inputs that got past the first check, files for readers that want a
// path, and a mutator that knows JSON.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace rankscope::fuzz {

/// Says at the end how many inputs were read to their end: a fuzzer whose inputs all fail at once tests
/// little.
struct Share {
  uint64_t all = 0, accepted = 0;
  ~Share() {
    std::fprintf(stderr, "stat::accepted_units:           %llu\n", static_cast<unsigned long long>(accepted));
  }
};

/// Calls `body`; an Error with something to say is as good an end as none. Anything else is found.
template <class Body>
void reading(const Body& body) {
  static Share share;
  ++share.all;
  try {
    body();
    ++share.accepted;
  } catch (const Error& error) {
    if (error.render().empty()) std::abort();
  }
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// A folder in memory where there is one; gone with the process.
class Scratch {
 public:
  Scratch() {
    std::string name =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/rankscope-fuzz-XXXXXX" : "/tmp/rankscope-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path put(const char* name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// What every mutator draws from.
class Mutator {
 public:
  Mutator(unsigned seed, size_t most) : most_(most), random_(seed) {}

 protected:
  size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }

  std::string mutated(std::string text) {
    const size_t size = text.size();
    text.resize(size + 16);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size, text.size()));
    return text;
  }

  const size_t most_;  // bytes that the result may have

 private:
  std::minstd_rand random_;
};

/// One change to a value somewhere inside: replaced, removed, copied from elsewhere, given another key.
class JsonMutator : Mutator {
 public:
  using Mutator::Mutator;

  /// False when the text is no JSON or became too long: then the bytes are mutated as bytes.
  bool mutate(std::string& text) {
    Json value = Json::parse(text, nullptr, false);
    if (value.is_discarded()) return false;
    for (size_t changes = below(4) == 0 ? 3 : 1; changes > 0; --changes) change(value);
    const std::string out = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (out.size() > most_) return false;
    text = out;
    return true;
  }

 private:
  static void collect(Json& value, std::vector<Json*>& out) {
    if (out.size() > 4000) return;
    out.push_back(&value);
    if (value.is_structured())
      for (Json& inner : value) collect(inner, out);
  }

  Json interesting() {
    switch (below(14)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return 0;
      case 3:
        return -1;
      case 4:
        return INT64_MAX;
      case 5:
        return INT64_MIN;
      case 6:
        return uint64_t{1} << 63;
      case 7:
        return 1e308;
      case 8:
        return 1 + below(64);
      case 9:
        return std::string(below(300), 'a');
      case 10:
        return "\xED\x95\x9C\n\x01";
      case 11:
        return Json::array();
      case 12:
        return Json::object();
      default:
        return 0.5;
    }
  }

  void change(Json& root) {
    std::vector<Json*> all;
    collect(root, all);
    Json& at = *all[below(all.size())];
    switch (below(6)) {
      case 0:
        at = interesting();
        return;
      case 1:
        at = Json(*all[below(all.size())]);
        return;
      case 2:
        if (at.is_number_integer()) at = at.get<int64_t>() / 2 + static_cast<int64_t>(below(5)) - 2;
        if (at.is_string()) at = mutated(at.get<std::string>());
        return;
      case 3:
        if (at.is_array() && !at.empty()) at.erase(below(at.size()));
        if (at.is_object() && !at.empty())
          at.erase(std::next(at.begin(), static_cast<std::ptrdiff_t>(below(at.size()))).key());
        return;
      case 4:
        if (at.is_array())
          at.push_back(at.empty() || below(2) == 0 ? interesting() : Json(at[below(at.size())]));
        if (at.is_object()) at[mutated("key")] = interesting();
        return;
      default:
        if (!at.is_object() || at.empty()) return;
        const std::string key = std::next(at.begin(), static_cast<std::ptrdiff_t>(below(at.size()))).key();
        const Json value = at[key];
        at.erase(key);
        at[mutated(key)] = value;
    }
  }
};

}  // namespace rankscope::fuzz
