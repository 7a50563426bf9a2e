// What lies below a folder: results, what they are of, and when they were written.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report/page.h"

namespace rankscope {

/// Lists folders of results. What a manifest says is kept until the manifest changes, so that asking every
/// two seconds costs no more than looking at the files.
class FolderList {
 public:
  /// Below `root`, three levels deep and 500 folders at most, by path. Links are not followed; a manifest
  /// that cannot be read leaves the model empty.
  std::vector<PageContent::Folder> below(const std::filesystem::path& root);

 private:
  struct Known {
    std::string state;  // size and time of the files it was read from
    PageContent::Folder folder;
  };
  std::map<std::string, Known> known_;
};

}  // namespace rankscope
