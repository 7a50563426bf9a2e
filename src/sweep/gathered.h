// The trials of one study that lie in several folders: stores of several machines, and tables that were
// exported from stores that are gone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "studies/runner.h"
#include "sweep/store.h"

namespace rankscope {

/// Whether a study runs, or ran, in this folder.
bool has_store(const std::filesystem::path& folder);

struct Gathered {
  Study study;
  std::vector<StoredTrial> trials;      // each once
  size_t repeated = 0;                  // rows left out because their trial was there already
  std::vector<std::string> notes = {};  // where folders contradict each other
};

/// In the order given. Of a trial that is in several folders a finished row is kept, the first of them.
/// A folder without a store has tables of a built-in study: the runner's keys say what their cells mean, and
/// a row whose settings do not give its id was changed by somebody and is an error.
Gathered gather(const std::vector<std::filesystem::path>& folders, const std::vector<const Runner*>& runners);

}  // namespace rankscope
