// SQLite with errors as Error: what is wrong with the store, and what to do.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace rankscope {

/// One prepared statement. Values are bound in order of the question marks.
class Statement {
 public:
  Statement(sqlite3* db, const std::filesystem::path& path, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::string_view text);
  Statement& bind(double value);
  Statement& bind(int64_t value);
  bool step();  // true: there is a row
  void run();   // to the end; the statement can be bound again
  std::string text(int column) const;
  double real(int column) const;
  int64_t whole(int column) const;

 private:
  sqlite3* db_;
  std::filesystem::path path_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

/// Everything between is written, or nothing. Waits for the writer before it.
class Transaction {
 public:
  Transaction(sqlite3* db, const std::filesystem::path& path);
  ~Transaction();
  void commit();

 private:
  sqlite3* db_;
  std::filesystem::path path_;
  bool open_ = true;
};

sqlite3* open_database(const std::filesystem::path& path, bool create);
/// To read only; what a killed process left half done is put right first, where that is possible. A folder in
/// which nothing can be written will do: then nobody may be writing.
sqlite3* look_at_database(const std::filesystem::path& path);
void close_database(sqlite3* db);
void execute(sqlite3* db, const std::filesystem::path& path, const char* sql);
int64_t changes(sqlite3* db);

}  // namespace rankscope
