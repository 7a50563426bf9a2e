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

class Hashes {
 public:
  static Hashes& instance() {
    static Hashes all;
    return all;
  }

  std::shared_future<std::string> begin(const std::filesystem::path& file) {
    const std::lock_guard lock(mutex_);
    std::shared_future<std::string>& known = known_[state_of(file)];
    if (!known.valid()) {
      std::promise<std::string> promise;
      known = promise.get_future().share();
      threads_.emplace_back([file, result = std::move(promise)](const std::stop_token& stop) mutable {
        try {
          result.set_value(hashed(file, stop));
        } catch (...) {
          result.set_exception(std::current_exception());
        }
      });
    }
    return known;
  }

 private:
  std::mutex mutex_;
  std::map<State, std::shared_future<std::string>> known_;
  std::vector<std::jthread> threads_;  // asked to stop, and waited for, when the process ends
};

}  // namespace

void hash_in_background(const std::vector<std::filesystem::path>& files) {
  for (const auto& file : files) Hashes::instance().begin(file);
}

std::string hash_of_file(const std::filesystem::path& file) { return Hashes::instance().begin(file).get(); }

}  // namespace rankscope
