#include "pass/file_hashes.h"

#include <sys/stat.h>

#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "base/sha256.h"

namespace rankscope {
namespace {

/// A file as it is now: a change of any of these means another hash.
using State = std::tuple<std::string, dev_t, ino_t, off_t, time_t, long>;

State state_of(const std::filesystem::path& file) {
  struct stat s {};
  if (::stat(file.c_str(), &s) != 0) return {file.string(), 0, 0, -1, 0, 0};
  return {file.string(), s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec};
}

/// In pieces, so that the end of the process need not wait for a large file.
std::string hashed(const std::filesystem::path& file, const std::stop_token& stop) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error("cannot read the file to hash it").in(file.string());
  Sha256 hash;
  std::vector<char> piece(1 << 20);
  while (!stop.stop_requested()) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hash.update(std::string_view(piece.data(), static_cast<size_t>(in.gcount())));
    if (in.bad()) throw Error("cannot read the file to hash it").in(file.string());
    if (!in) return hash.hex();
  }
  throw Error("hashing was stopped").in(file.string());
}

using Answer = std::shared_future<std::string>;

/// What is known, or being found out. An answer that failed is forgotten.
class Known {
 public:
  /// The answer for the file as it is now; `fresh` says that the caller has to give it.
  Answer of(const std::filesystem::path& file, std::promise<std::string>& mine, bool& fresh) {
    const std::lock_guard lock(mutex_);
    const auto [entry, inserted] = answers_.try_emplace(state_of(file));
    fresh = inserted;
    if (fresh) entry->second = mine.get_future().share();
    return entry->second;
  }
  void forget(const std::filesystem::path& file) {
    const std::lock_guard lock(mutex_);
    answers_.erase(state_of(file));
  }

 private:
  std::mutex mutex_;
  std::map<State, Answer> answers_;
};

Known& known() {
  static Known all;
  return all;
}

void answer(const std::filesystem::path& file, std::promise<std::string>& promise,
            const std::stop_token& stop) {
  try {
    promise.set_value(hashed(file, stop));
  } catch (...) {
    known().forget(file);
    promise.set_exception(std::current_exception());
  }
}

}  // namespace

BackgroundHashes::BackgroundHashes(const std::vector<std::filesystem::path>& files) {
  for (const auto& file : files) {
    std::promise<std::string> promise;
    bool fresh = false;
    known().of(file, promise, fresh);
    if (fresh)
      threads_.emplace_back([file, mine = std::move(promise)](const std::stop_token& stop) mutable {
        answer(file, mine, stop);
      });
  }
}

BackgroundHashes::~BackgroundHashes() {
  for (std::jthread& thread : threads_) thread.request_stop();  // all at once; their ends wait one by one
}

std::string hash_of_file(const std::filesystem::path& file) {
  std::promise<std::string> promise;
  bool fresh = false;
  const Answer found = known().of(file, promise, fresh);
  if (fresh) answer(file, promise, {});
  return found.get();
}

}  // namespace rankscope
