// The store of a study: one SQLite file (study.db, write-ahead log) with one row a trial, and a folder
// trials/<id>/ for each. No absolute path is kept, so a moved folder goes on where it was.
//
// A finished trial is written twice, first as trials/<id>/result.json, whole or absent, then as its row: if
// the last transactions are lost with the power, the results are read back from the folders. So nothing that
// was finished is lost or run again, and a study.db that is damaged can be thrown away.
//
// A store may come from somebody else. Its ids are checked to be ids before they become names of folders, and
// nothing in it is reached through a link. The folder is held while it is open: one that is moved meanwhile
// ends the run, so that no trial counts as done whose files are somewhere else.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/held_folder.h"
#include "studies/study.h"

namespace rankscope {

enum class TrialState { pending, running, done, failed };
const char* to_text(TrialState state);
/// The state of that name; `place` is named where there is none.
TrialState trial_state(const std::string& text, const std::string& place);

struct StoredTrial {
  std::string id, study, runner;
  std::string config;  // canonical JSON
  TrialState state = TrialState::pending;
  std::string owner, device, reason;
  int64_t attempts = 0;
  double lease = 0;                  // seconds of the wall clock after which the owner counts as gone
  double started = 0, finished = 0;  // seconds of the wall clock
  double seconds = 0;                // its share of the time its stack took
  std::map<std::string, double> values;
  std::string precision;  // as in Outcome; empty also where nobody wrote it down
};

struct Counts {
  int64_t pending = 0, running = 0, done = 0, failed = 0;
  int64_t all() const { return pending + running + done + failed; }
};

class Store {
 public:
  static constexpr int kSchema = 1;  // a store with a higher one is refused

  /// Opens the store of `folder`; `create` makes folder and store where there is none.
  explicit Store(const std::filesystem::path& folder, bool create = false)
      : Store(folder, create ? Access::create : Access::change) {}
  /// Opens it to read only, where nothing can be written, too. Whatever changes it throws.
  static Store look_at(const std::filesystem::path& folder) { return {folder, Access::look}; }
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path trial_folder(const std::string& id) const;

  /// The study whose trials these are. One store holds one study; the same study may come again, changed.
  void keep_study(const Study& study);
  Study study() const;

  /// Adds trials that are not there yet and returns how many.
  int64_t add(const Study& study, const std::vector<Trial>& trials);

  /// In the order in which they were added.
  std::vector<StoredTrial> trials() const;
  std::optional<StoredTrial> find(const std::string& id) const;
  Counts counts() const;

  /// Of these trials, those that were pending now belong to `owner` until the lease ends. Atomic: two
  /// processes never get the same trial.
  std::vector<std::string> claim(const std::vector<std::string>& ids, const std::string& owner,
                                 const std::string& device, double lease_seconds);
  /// Puts the end of the lease off and returns how many of the owner's trials still run.
  int64_t renew(const std::string& owner, double lease_seconds);
  /// Records what came of a trial; false when the trial belongs to someone else by now.
  bool finish(const std::string& id, const std::string& owner, const Outcome& outcome, double seconds);
  /// The owner's running trials are pending again.
  int64_t give_back(const std::string& owner);
  /// The same for trials whose owner is gone: its lease is over, or its process has ended on this machine.
  /// One that left its result, and a pending one whose result is there, is done.
  int64_t reclaim();
  /// Failed trials are pending again.
  int64_t retry();

 private:
  enum class Access { look, change, create };
  Store(const std::filesystem::path& folder, Access access);
  void require_here() const;

  struct Database;
  std::filesystem::path folder_;
  std::unique_ptr<HeldFolder> held_;
  std::unique_ptr<Database> db_;
};

/// "host:pid:start time:number": names this process and nobody else, also after its pid is used again.
std::string owner_name();

/// False when `owner` was a process of this machine and has ended.
bool may_be_alive(const std::string& owner);

}  // namespace rankscope
