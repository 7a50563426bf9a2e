// Stands in for the store in builds without SQLite.
#include "base/error.h"
#include "sweep/store.h"

namespace rankscope {

struct Store::Database {};

Store::Store(const std::filesystem::path& folder, Access) {
  throw Error("this build keeps no studies, because SQLite was not found when it was made")
      .in(folder.string())
      .hint("apt install libsqlite3-dev libtomlplusplus-dev, then make build");
}
Store::~Store() = default;
std::filesystem::path Store::trial_folder(const std::string&) const { return {}; }
void Store::require_here() const {}
const char* to_text(TrialState) { return ""; }
TrialState trial_state(const std::string&, const std::string&) { return TrialState::pending; }
void Store::keep_study(const Study&) {}
Study Store::study() const { return {}; }
int64_t Store::add(const Study&, const std::vector<Trial>&) { return 0; }
std::vector<StoredTrial> Store::trials() const { return {}; }
std::optional<StoredTrial> Store::find(const std::string&) const { return {}; }
Counts Store::counts() const { return {}; }
std::vector<std::string> Store::claim(const std::vector<std::string>&, const std::string&, const std::string&,
                                      double) {
  return {};
}
int64_t Store::renew(const std::string&, double) { return 0; }
bool Store::finish(const std::string&, const std::string&, const Outcome&, double) { return false; }
int64_t Store::give_back(const std::string&) { return 0; }
int64_t Store::reclaim() { return 0; }
int64_t Store::retry() { return 0; }

}  // namespace rankscope
