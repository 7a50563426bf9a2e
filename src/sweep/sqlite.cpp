#include "sweep/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/error.h"

namespace rankscope {
namespace {

constexpr int kWaitMilliseconds = 60000;  // for another process that writes
constexpr int kLargestValue = 16 << 20;   // bytes; a study's file has a mebibyte at most, results have less

Error fault(sqlite3* db, const std::filesystem::path& path) {
  const int code = db == nullptr ? SQLITE_NOMEM : sqlite3_errcode(db);
  const std::string said = db == nullptr ? "not enough memory" : sqlite3_errmsg(db);
  switch (code & 0xFF) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Error(fmt::format("the store is damaged: {}", said))
          .in(path.string())
          .hint(
              "move study.db away and run the study again with the same --out: results are read back from "
              "trials/");
    case SQLITE_FULL:
    case SQLITE_IOERR:  // a file that may not grow, too, and a log for whose index there is no room
      return Error(fmt::format("the store could not be read or written: {}", said))
          .in(path.string())
          .hint(
              "the disk may be full, or a file may not grow (ulimit -f): make room and run the command "
              "again; what was finished before is kept");
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return Error(fmt::format("cannot open the store: {}", said))
          .in(path.string())
          .hint("check the permissions");
    case SQLITE_BUSY:
      return Error("another process keeps the store locked").in(path.string()).hint("rankscope study status");
    default:
      return Error(fmt::format("the store: {}", said))
          .in(path.string())
          .hint("rankscope does not write stores like this one: take one that it wrote");
  }
}

}  // namespace

Statement::Statement(sqlite3* db, const std::filesystem::path& path, std::string_view sql)
    : db_(db), path_(path) {
  if (sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr) != SQLITE_OK)
    throw fault(db, path);
}
Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::bind(std::string_view text) {
  if (sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT) !=
      SQLITE_OK)
    throw fault(db_, path_);
  return *this;
}
Statement& Statement::bind(double value) {
  if (sqlite3_bind_double(statement_, ++bound_, value) != SQLITE_OK) throw fault(db_, path_);
  return *this;
}
Statement& Statement::bind(int64_t value) {
  if (sqlite3_bind_int64(statement_, ++bound_, value) != SQLITE_OK) throw fault(db_, path_);
  return *this;
}
bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) throw fault(db_, path_);
  return code == SQLITE_ROW;
}
void Statement::run() {
  while (step()) {
  }
  sqlite3_reset(statement_);
  bound_ = 0;
}
std::string Statement::text(int column) const {
  const unsigned char* data = sqlite3_column_text(statement_, column);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
  return data == nullptr ? "" : std::string(reinterpret_cast<const char*>(data), size);
}
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
int64_t Statement::whole(int column) const { return sqlite3_column_int64(statement_, column); }

Transaction::Transaction(sqlite3* db, const std::filesystem::path& path) : db_(db), path_(path) {
  execute(db, path, "BEGIN IMMEDIATE");
}
Transaction::~Transaction() {
  if (open_) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
}
void Transaction::commit() {
  execute(db_, path_, "COMMIT");
  open_ = false;
}

namespace {

// A journal that ends in the name of a file makes SQLite remove that file, wherever it is, once it has put
// the database right: so it ends a change of several databases at once, which we never make.
void refuse_journal_that_removes(const std::filesystem::path& path) {
  constexpr std::array<unsigned char, 8> kMark{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  const std::string journal = path.string() + "-journal";
  std::ifstream file(journal, std::ios::binary);
  if (!file.seekg(-static_cast<std::streamoff>(kMark.size()), std::ios::end)) return;  // none, or too short
  std::array<char, kMark.size()> last{};
  const auto same = [](char a, unsigned char b) { return static_cast<unsigned char>(a) == b; };
  if (!file.read(last.data(), last.size()) || !std::equal(last.begin(), last.end(), kMark.begin(), same))
    return;
  throw Error("this journal names another file, which would be removed")
      .in(journal)
      .hint("do not use this store: rankscope did not write it");
}

sqlite3* opened(const std::string& name, int flags, const std::filesystem::path& path) {
  refuse_journal_that_removes(path);
  sqlite3* db = nullptr;
  if (sqlite3_open_v2(name.c_str(), &db, flags | SQLITE_OPEN_FULLMUTEX, nullptr) != SQLITE_OK) {
    const Error error = fault(db, path);
    sqlite3_close(db);
    throw error;
  }
  sqlite3_busy_timeout(db, kWaitMilliseconds);
  // A store from elsewhere may hold more than tables: triggers that undo what is written, views that never
  // end.
  for (const int setting :
       {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW})
    sqlite3_db_config(db, setting, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kLargestValue);  // also of values that are computed as they are read
  return db;
}

// Some builds of SQLite take a name that begins with "file:" for a URI; an absolute one never does.
std::string as_name(const std::filesystem::path& path) { return std::filesystem::absolute(path).string(); }

// A file name as a URI: whatever is not plain is escaped.
std::string as_uri(const std::filesystem::path& path, const char* parameters) {
  std::string out = "file:";
  for (const unsigned char c : as_name(path))
    out += std::isalnum(c) != 0 || c == '/' || c == '-' || c == '_' || c == '.'
               ? std::string(1, static_cast<char>(c))
               : fmt::format("%{:02x}", c);
  return out + parameters;
}

}  // namespace

sqlite3* open_database(const std::filesystem::path& path, bool create) {
  return opened(as_name(path), SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0), path);
}

sqlite3* look_at_database(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (::access(folder.c_str(), W_OK) ==
      0) {  // a process that was killed may have left something to put right
    sqlite3* db = opened(as_name(path), SQLITE_OPEN_READWRITE, path);
    sqlite3_exec(db, "PRAGMA query_only = ON", nullptr, nullptr, nullptr);
    return db;
  }
  // SQLite wants to write an index of the log beside it. Without a log there is nothing to miss.
  std::error_code missing;
  const auto left_in_log = std::filesystem::file_size(path.string() + "-wal", missing);
  if (!missing && left_in_log > 0) return opened(as_name(path), SQLITE_OPEN_READONLY, path);
  return opened(as_uri(path, "?immutable=1"), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, path);
}

void close_database(sqlite3* db) { sqlite3_close(db); }

// SQLite waits for a lock by itself, except where two processes that already read both want to write (both
// change the journal of a new store, say): one of them is told "busy" at once, has let go by then, and asks
// again here.
void execute(sqlite3* db, const std::filesystem::path& path, const char* sql) {
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + std::chrono::milliseconds(kWaitMilliseconds);
  for (;;) {
    const int code = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return;
    if ((code & 0xFF) != SQLITE_BUSY || clock::now() >= deadline) throw fault(db, path);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int64_t changes(sqlite3* db) { return sqlite3_changes(db); }

}  // namespace rankscope
