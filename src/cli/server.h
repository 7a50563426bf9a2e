// `rankscope serve` from the inside: pages of one folder, on loopback, for whoever sits at this machine.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace rankscope {

/// The pages of a folder. Knows nothing of HTTP; safe to ask from many threads.
class FolderPages {
 public:
  explicit FolderPages(const std::filesystem::path& root);

  struct Answer {
    bool found = false;
    std::string text;
    std::string tag;  // changes when the results do
  };
  /// `folder` is a path below the root as a request names it, "" for the root itself. Whatever it says,
  /// nothing outside the root is looked at: links that lead out are not followed.
  Answer page(const std::string& folder);
  Answer data(const std::string& folder, const std::string& known_tag);

 private:
  struct Entry {
    std::string tag, data;
  };
  std::filesystem::path resolve(const std::string& folder) const;
  std::string tag_of(const std::filesystem::path& folder) const;
  Entry current(const std::string& folder);
  template <class Write>
  std::string render(const std::filesystem::path& folder, Write write) const;

  std::filesystem::path root_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

/// Binds to 127.0.0.1, calls `ready` with the port (the one asked for, or any for 0), and serves until the
/// process ends.
void serve_pages(FolderPages& pages, int port, const std::function<void(int)>& ready);

}  // namespace rankscope
