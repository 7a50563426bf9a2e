#include "sweep/store.h"

#include <fmt/format.h>

#include <chrono>
#include <mutex>

#include "base/error.h"
#include "sweep/result.h"
#include "sweep/sqlite.h"

namespace rankscope {
namespace fs = std::filesystem;

struct Store::Database {
  fs::path path;
  sqlite3* handle = nullptr;
  std::mutex mutex;  // the heartbeat and the runner share one connection
  std::string columns;

  Statement prepare(std::string_view sql) { return {handle, path, sql}; }
  ~Database() { close_database(handle); }
};

namespace {

constexpr const char* kTables = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE trials (
  number INTEGER PRIMARY KEY,      -- the order of the study
  id TEXT NOT NULL UNIQUE,
  study TEXT NOT NULL,
  runner TEXT NOT NULL,
  config TEXT NOT NULL,            -- canonical JSON
  state TEXT NOT NULL DEFAULT 'pending',
  owner TEXT NOT NULL DEFAULT '',
  device TEXT NOT NULL DEFAULT '',
  precision TEXT NOT NULL DEFAULT '',
  lease REAL NOT NULL DEFAULT 0,   -- wall clock
  attempts INTEGER NOT NULL DEFAULT 0,
  started REAL NOT NULL DEFAULT 0,
  finished REAL NOT NULL DEFAULT 0,
  seconds REAL NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  result TEXT NOT NULL DEFAULT '{}');
CREATE INDEX trials_by_state ON trials (state);
)sql";

constexpr const char* kColumns =
    "SELECT id, study, runner, config, state, owner, device, lease, attempts, started, finished, seconds, "
    "reason, result, {} FROM trials ";

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Ids become names of folders: nothing but an id may.
std::string checked_id(const std::string& id, const fs::path& path) {
  if (is_trial_id(id)) return id;
  throw Error(fmt::format("a trial has the id \"{}\", which is none", printable(id)))
      .in(path.string())
      .hint("do not use this store: rankscope did not write it");
}

// What a study does with its trials takes them for read: what is none is told here, with its place.
std::string checked_config(std::string config, const std::string& whose, const fs::path& path) {
  try {
    parse_canonical(config);
  } catch (const Error& fault) {
    throw Error(fault.message())
        .in(fmt::format("{}, configuration of {}", path.string(), whose))
        .hint("do not use this store: rankscope did not write it");
  }
  return config;
}

StoredTrial read_row(const Statement& row, const fs::path& path) {
  return {checked_id(row.text(0), path),
          row.text(1),
          row.text(2),
          checked_config(row.text(3), "the trial " + row.text(0), path),
          trial_state(row.text(4), path.string()),
          row.text(5),
          row.text(6),
          row.text(12),
          row.whole(8),
          row.real(7),
          row.real(9),
          row.real(10),
          row.real(11),
          parse_values(row.text(13), path.string()),
          row.text(14)};
}

// The default of a column that came later is in the file once and in every row.
constexpr size_t kMostText = size_t{256} << 20;

std::vector<StoredTrial> read_rows(Statement& rows, const fs::path& path) {
  std::vector<StoredTrial> out;
  size_t text = 0;
  while (rows.step()) {
    for (const int column : {1, 2, 3, 5, 6, 12, 13, 14}) text += rows.text(column).size();
    if (text > kMostText)
      throw Error(fmt::format("its trials hold more than {} MiB of text", kMostText >> 20)).in(path.string());
    out.push_back(read_row(rows, path));
  }
  return out;
}

std::string meta_value(sqlite3* db, const fs::path& path, std::string_view key) {
  Statement query(db, path, "SELECT value FROM meta WHERE key = ?");
  return query.bind(key).step() ? query.text(0) : "";
}

void set_meta(sqlite3* db, const fs::path& path, std::string_view key, std::string_view value) {
  Statement(db, path, "INSERT OR REPLACE INTO meta VALUES (?, ?)").bind(key).bind(value).run();
}

bool has_tables(sqlite3* db, const fs::path& path) {
  Statement query(db, path, "SELECT count(*) FROM sqlite_master");
  return query.step() && query.whole(0) > 0;
}

// Columns that are computed as they are read cost nothing in the file, and all the memory and time there is.
void refuse_computed_columns(sqlite3* db, const fs::path& path) {
  Statement query(db, path,
                  "SELECT (SELECT count(*) FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND "
                  "name IN ('meta', 'trials')), (SELECT count(*) FROM pragma_table_xinfo('trials') WHERE "
                  "hidden <> 0) + (SELECT count(*) FROM pragma_table_xinfo('meta') WHERE hidden <> 0)");
  if (query.step() && query.whole(0) == 2 && query.whole(1) == 0) return;
  throw Error("the tables of this store are not plain ones")
      .in(path.string())
      .hint("do not use this store: rankscope did not write it");
}

void check_schema(sqlite3* db, const fs::path& path) {
  if (!has_tables(db, path))
    throw Error("nothing is in the store yet: it is being made, or was stopped before it was")
        .in(path.string())
        .hint("rankscope study run NAME --out " + path.parent_path().string());
  Statement meta(db, path, "SELECT count(*) FROM sqlite_master WHERE name = 'meta'");
  if (!meta.step() || meta.whole(0) == 0)
    throw Error("this database is not a store of trials").in(path.string()).hint("another --out");
  refuse_computed_columns(db, path);
  const std::string schema = meta_value(db, path, "schema");
  if (schema.empty() || schema.size() > 9 || schema.find_first_not_of("0123456789") != std::string::npos)
    throw Error(fmt::format("the store has no schema number that makes sense: \"{}\"", printable(schema)))
        .in(path.string());
  if (std::stoi(schema) > Store::kSchema)
    throw Error(fmt::format("the store was written by a newer rankscope: schema {}, this one knows {}",
                            schema, Store::kSchema))
        .in(path.string())
        .hint("use that version, or another --out; the store was not touched");
  Statement check(db, path, "PRAGMA quick_check(1)");
  if (check.step() && check.text(0) != "ok")
    throw Error(fmt::format("the store is damaged: {}", printable(check.text(0))))
        .in(path.string())
        .hint(
            "move study.db away and run the study again with the same --out: results are read back from "
            "trials/");
}

// Stores were once made without it. Programs that do not know the column get along with it.
bool lacks_precision(sqlite3* db, const fs::path& path) {
  Statement query(db, path, "SELECT count(*) FROM pragma_table_info('trials') WHERE name = 'precision'");
  return query.step() && query.whole(0) == 0;
}

void add_missing_column(sqlite3* db, const fs::path& path) {
  if (!lacks_precision(db, path)) return;
  Transaction change(db, path);
  if (lacks_precision(db, path))  // another process may have been first
    execute(db, path, "ALTER TABLE trials ADD COLUMN precision TEXT NOT NULL DEFAULT ''");
  change.commit();
}

}  // namespace

const char* to_text(TrialState state) {
  switch (state) {
    case TrialState::pending:
      return "pending";
    case TrialState::running:
      return "running";
    case TrialState::done:
      return "done";
    case TrialState::failed:
      return "failed";
  }
  return "";
}

TrialState trial_state(const std::string& text, const std::string& place) {
  for (const TrialState s : {TrialState::pending, TrialState::running, TrialState::done, TrialState::failed})
    if (text == to_text(s)) return s;
  throw Error(fmt::format("a trial has the state \"{}\"", printable(text))).in(place);
}

Store::Store(const fs::path& folder, Access access) : folder_(folder), db_(std::make_unique<Database>()) {
  db_->path = folder / "study.db";
  const bool create = access == Access::create;
  std::error_code fault;
  if (!create && !fs::exists(db_->path, fault))
    throw Error("there is no study in this folder: it has no study.db")
        .in(folder.string())
        .hint("rankscope study run NAME --out " + folder.string());
  fault.clear();
  if (create) fs::create_directories(folder, fault);
  if (fault) throw Error(fmt::format("cannot make the folder: {}", fault.message())).in(folder.string());
  held_ = std::make_unique<HeldFolder>(folder);
  if (create) held_->make({"trials"});
  for (const char* name : {"study.db", "study.db-wal", "study.db-shm", "study.db-journal"})
    if (!held_->has_file({name}))  // a journal comes and goes while others open the same store
      if (const fs::file_status now = fs::symlink_status(folder / name);
          fs::exists(now) && !fs::is_regular_file(now))
        throw Error("this is not a regular file").in((folder / name).string());
  db_->handle = access == Access::look ? look_at_database(db_->path) : open_database(db_->path, create);
  sqlite3* db = db_->handle;
  constexpr const char* kDurable = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL";
  if (create && !has_tables(db, db_->path)) {
    execute(db, db_->path, kDurable);
    Transaction change(db, db_->path);
    if (!has_tables(db, db_->path)) {  // another process may have been first
      execute(db, db_->path, kTables);
      set_meta(db, db_->path, "schema", std::to_string(kSchema));
    }
    change.commit();
  }
  check_schema(db, db_->path);  // before anything is changed
  if (access != Access::look) {
    execute(db, db_->path, kDurable);
    add_missing_column(db, db_->path);
  }
  db_->columns = fmt::format(kColumns, lacks_precision(db, db_->path) ? "''" : "precision");
}

Store::~Store() = default;

fs::path Store::trial_folder(const std::string& id) const {
  return folder_ / "trials" / checked_id(id, db_->path);
}

void Store::require_here() const {
  if (held_->still_at_its_path()) return;
  throw Error("the store was moved or removed while it was in use; what was finished before is kept")
      .in(folder_.string())
      .hint("rankscope study resume, with the place where it is now");
}

void Store::keep_study(const Study& study) {
  const std::scoped_lock lock(db_->mutex);
  sqlite3* db = db_->handle;
  const std::string there = meta_value(db, db_->path, "study");
  if (!there.empty() && there != study.name)
    throw usage_error(fmt::format("this folder holds the study {}, not {}", there, study.name))
        .in(folder_.string())
        .hint("another --out");
  Transaction change(db, db_->path);
  set_meta(db, db_->path, "study", study.name);
  set_meta(db, db_->path, "study_toml", study.source);
  set_meta(db, db_->path, "study_place", study.place);
  if (!study.defaults.empty()) {  // what the runner knows and the file does not say
    set_meta(db, db_->path, "defaults", canonical(study.defaults));
    set_meta(db, db_->path, "fixed", canonical(study.fixed));
  }
  change.commit();
}

Study Store::study() const {
  const std::scoped_lock lock(db_->mutex);
  const std::string name = meta_value(db_->handle, db_->path, "study");
  if (name.empty()) throw Error("the store holds no study yet").in(folder_.string());
  if (printable(name, name.size()) != name)  // it is printed, and becomes part of names
    throw Error(fmt::format("the study of this store has the name \"{}\", which is none", printable(name)))
        .in(db_->path.string())
        .hint("do not use this store: rankscope did not write it");
  Study out = parse_study(meta_value(db_->handle, db_->path, "study_toml"), name,
                          meta_value(db_->handle, db_->path, "study_place"));
  const auto read = [&](const char* key, const char* what, Config& into) {  // not in stores from before
    const std::string text = meta_value(db_->handle, db_->path, key);
    if (!text.empty()) into = parse_canonical(checked_config(text, what, db_->path));
  };
  read("defaults", "the defaults", out.defaults);
  read("fixed", "the fixed settings", out.fixed);
  return out;
}

int64_t Store::add(const Study& study, const std::vector<Trial>& trials) {
  const std::scoped_lock lock(db_->mutex);
  int64_t added = 0;
  {
    Transaction change(db_->handle, db_->path);
    Statement known = db_->prepare("SELECT config FROM trials WHERE id = ?");
    Statement insert =
        db_->prepare("INSERT OR IGNORE INTO trials (id, study, runner, config) VALUES (?, ?, ?, ?)");
    for (const Trial& trial : trials) {
      const std::string config = canonical(trial.config);
      insert.bind(trial.id).bind(study.name).bind(study.runner).bind(config).run();
      if (changes(db_->handle) == 1) {
        ++added;
        continue;
      }
      known.bind(trial.id).step();
      const bool same = known.text(0) == config;
      known.run();
      if (!same)
        throw Error(fmt::format("two configurations have the id {}", trial.id)).in(db_->path.string());
    }
    change.commit();
  }
  // What the study consists of does not stay in the log, which is what a power cut may cost.
  execute(db_->handle, db_->path, "PRAGMA wal_checkpoint(TRUNCATE)");
  return added;
}

std::vector<StoredTrial> Store::trials() const {
  const std::scoped_lock lock(db_->mutex);
  Statement rows = db_->prepare(db_->columns + "ORDER BY number");
  return read_rows(rows, db_->path);
}

std::optional<StoredTrial> Store::find(const std::string& id) const {
  const std::scoped_lock lock(db_->mutex);
  Statement row = db_->prepare(db_->columns + "WHERE id = ?");
  if (!row.bind(id).step()) return {};
  return read_row(row, db_->path);
}

Counts Store::counts() const {
  const std::scoped_lock lock(db_->mutex);
  Counts out;
  Statement rows = db_->prepare("SELECT state, count(*) FROM trials GROUP BY state");
  while (rows.step()) {
    const TrialState state = trial_state(rows.text(0), db_->path.string());
    (state == TrialState::pending   ? out.pending
     : state == TrialState::running ? out.running
     : state == TrialState::done    ? out.done
                                    : out.failed) = rows.whole(1);
  }
  return out;
}

std::vector<std::string> Store::claim(const std::vector<std::string>& ids, const std::string& owner,
                                      const std::string& device, double lease_seconds) {
  require_here();
  for (const std::string& id : ids) held_->make({"trials", checked_id(id, db_->path)});
  const std::scoped_lock lock(db_->mutex);
  std::vector<std::string> out;
  Transaction change(db_->handle, db_->path);
  Statement update = db_->prepare(
      "UPDATE trials SET state = 'running', owner = ?, device = ?, lease = ?, started = ?, "
      "attempts = attempts + 1, reason = '', precision = '' WHERE id = ? AND state = 'pending'");
  for (const std::string& id : ids) {
    update.bind(owner).bind(device).bind(now() + lease_seconds).bind(now()).bind(id).run();
    if (changes(db_->handle) == 1) out.push_back(id);
  }
  change.commit();
  return out;
}

int64_t Store::renew(const std::string& owner, double lease_seconds) {
  require_here();
  const std::scoped_lock lock(db_->mutex);
  db_->prepare("UPDATE trials SET lease = ? WHERE owner = ? AND state = 'running'")
      .bind(now() + lease_seconds)
      .bind(owner)
      .run();
  return changes(db_->handle);
}

bool Store::finish(const std::string& id, const std::string& owner, const Outcome& outcome, double seconds) {
  const std::optional<StoredTrial> trial = find(id);
  if (!trial || trial->state != TrialState::running || trial->owner != owner) return false;
  require_here();  // what failed may have failed because of that
  if (!outcome.failed)
    write_result(trial_folder(id), trial->config, {outcome.values, seconds, outcome.precision});
  const std::scoped_lock lock(db_->mutex);
  db_->prepare(
         "UPDATE trials SET state = ?, owner = '', finished = ?, seconds = ?, reason = ?, result = ?, "
         "precision = ? WHERE id = ? AND owner = ? AND state = 'running'")
      .bind(to_text(outcome.failed ? TrialState::failed : TrialState::done))
      .bind(now())
      .bind(seconds)
      .bind(outcome.reason)
      .bind(values_json(outcome.values))
      .bind(outcome.precision)
      .bind(id)
      .bind(owner)
      .run();
  return changes(db_->handle) == 1;
}

int64_t Store::give_back(const std::string& owner) {
  const std::scoped_lock lock(db_->mutex);
  db_->prepare("UPDATE trials SET state = 'pending', owner = '' WHERE owner = ? AND state = 'running'")
      .bind(owner)
      .run();
  return changes(db_->handle);
}

int64_t Store::reclaim() {
  require_here();
  const std::scoped_lock lock(db_->mutex);
  Transaction change(db_->handle, db_->path);
  std::vector<StoredTrial> open;
  {
    Statement rows = db_->prepare(db_->columns + "WHERE state IN ('pending', 'running') ORDER BY number");
    open = read_rows(rows, db_->path);
  }
  Statement free = db_->prepare("UPDATE trials SET state = 'pending', owner = '' WHERE id = ?");
  Statement adopt = db_->prepare(
      "UPDATE trials SET state = 'done', owner = '', seconds = ?, result = ?, precision = ?, reason = '' "
      "WHERE id = ?");
  int64_t freed = 0;
  for (const StoredTrial& trial : open) {
    const bool running = trial.state == TrialState::running;
    if (running && trial.lease > now() && may_be_alive(trial.owner)) continue;
    std::optional<TrialResult> result;
    if (held_->has_file({"trials", trial.id, "result.json"}))
      result = read_result(trial_folder(trial.id), trial.config);
    if (result) {
      adopt.bind(result->seconds)
          .bind(values_json(result->values))
          .bind(result->precision)
          .bind(trial.id)
          .run();
    } else if (running) {
      free.bind(trial.id).run();
      ++freed;
    }
  }
  change.commit();
  return freed;
}

int64_t Store::retry() {
  const std::scoped_lock lock(db_->mutex);
  db_->prepare("UPDATE trials SET state = 'pending', reason = '' WHERE state = 'failed'").run();
  return changes(db_->handle);
}

}  // namespace rankscope
