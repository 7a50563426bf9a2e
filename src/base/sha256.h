// SHA-256, streamed (OpenSSL underneath).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace rankscope {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  std::string hex();  // ends the stream

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rankscope
