// What `rankscope serve` shows: the pages of one folder and their data, kept until the results change.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/folder_list.h"

namespace rankscope {

/// The pages of a folder. Knows nothing of HTTP.
class FolderPages {
 public:
  explicit FolderPages(const std::filesystem::path& root);

  using Text = std::shared_ptr<const std::string>;  // shared by all who are sent it
  struct Answer {
    Text text;        // nothing: there are no such results
    std::string tag;  // changes when the results do
  };
  /// `folder` is a path below the root as a request names it, "" for the root itself; several with line
  /// breaks between them are shown side by side. Whatever it says, nothing outside the root is looked at, and
  /// results with a link or a pipe among their files are refused.
  Answer page(const std::string& folder);
  Answer data(const std::string& folder);

 private:
  struct Entry {
    std::string tag;
    Text data, page;
    std::chrono::steady_clock::time_point looked;
  };
  using Paths = std::vector<std::filesystem::path>;
  std::filesystem::path resolve(const std::string& folder) const;
  Paths resolve_all(const std::string& folders) const;
  std::string tag_of(const std::filesystem::path& folder);
  Entry& current(const Paths& folders);
  template <class Write>
  std::string render(const Paths& folders, Write write);

  std::filesystem::path root_;
  FolderList list_;
  std::map<std::string, Entry> entries_;
};

}  // namespace rankscope
