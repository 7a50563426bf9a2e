#include "base/asked_keys.h"

namespace rankscope {
namespace {

thread_local AskedKeys* listening = nullptr;

}  // namespace

AskedKeys::AskedKeys() : before_(listening) { listening = this; }
AskedKeys::~AskedKeys() { listening = before_; }

void note_asked_key(const char* key) {
  if (listening != nullptr) listening->keys_.insert(key);
}

}  // namespace rankscope
