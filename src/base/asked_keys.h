// Which keys of JSON objects somebody has asked for: what a reader passes over is what it does not know.
#pragma once

#include <set>
#include <string>

namespace rankscope {

/// While it lives, every key that a JsonObject of this thread is asked for is written down.
class AskedKeys {
 public:
  AskedKeys();
  ~AskedKeys();
  AskedKeys(const AskedKeys&) = delete;
  AskedKeys& operator=(const AskedKeys&) = delete;
  const std::set<std::string>& keys() const { return keys_; }

 private:
  friend void note_asked_key(const char* key);
  std::set<std::string> keys_;
  AskedKeys* before_;
};

void note_asked_key(const char* key);

}  // namespace rankscope
