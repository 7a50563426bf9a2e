// Any bytes as a study.db, or any JSON as the values in its cells: refused with an Error, or trials whose
// folders lie in the store.
#include "json_mutator.h"
#include "sweep/sqlite.h"
#include "sweep/store.h"

namespace {

using namespace rankscope;

// {"meta": {key: value}, "trials": [{column: value}]} into the tables that a store has.
void fill(sqlite3* db, const std::filesystem::path& path, const Json& cells) {
  execute(db, path, "DELETE FROM meta; DELETE FROM trials");
  const auto text = [](const Json& value) {
    return value.is_string() ? value.get<std::string>()
                             : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  if (!cells.is_object()) return;
  const Json meta = cells.value("meta", Json::object());
  if (meta.is_object())
    for (const auto& [key, value] : meta.items())
      Statement(db, path, "INSERT OR REPLACE INTO meta VALUES (?, ?)").bind(key).bind(text(value)).run();
  const Json trials = cells.value("trials", Json::array());
  if (!trials.is_array()) return;
  for (const Json& trial : trials) {
    if (!trial.is_object()) continue;
    Statement insert(db, path,
                     "INSERT OR IGNORE INTO trials (id, study, runner, config, state, owner, lease, result, "
                     "reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const char* column :
         {"id", "study", "runner", "config", "state", "owner", "lease", "result", "reason"})
      insert.bind(trial.contains(column) ? text(trial[column]) : std::string());
    insert.run();
  }
}

void read(const std::filesystem::path& folder) {
  const Store store = Store::look_at(folder);
  store.counts();
  for (const StoredTrial& trial : store.trials()) {
    if (store.trial_folder(trial.id).parent_path() != folder / "trials") std::abort();
    may_be_alive(trial.owner);
    parse_canonical(trial.config);
  }
  store.study();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Scratch bytes, cells;
  static sqlite3* const db = [] {
    { Store made(cells.path(), true); }
    sqlite3* open = open_database(cells.path() / "study.db", false);
    execute(open, cells.path() / "study.db", "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF");
    return open;
  }();
  fuzz::reading([&] {
    const Json json = Json::parse(data, data + size, nullptr, false);
    if (json.is_discarded()) {
      bytes.put("study.db", fuzz::text_of(data, size));
      return read(bytes.path());
    }
    fill(db, cells.path() / "study.db", json);
    read(cells.path());
  });
  return 0;
}
