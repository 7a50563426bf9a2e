// The one error of the project: what is wrong, where, what to do.
//
// The library throws it and never prints, aborts or exits; `cli/main.cpp` turns it into up to three lines
// on stderr and an exit code. A text is built in reading order:
//
//   throw Error("expected 12 heads, but config.json says 0").in(path).hint("check num_attention_heads");
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankscope {

enum class ErrorKind {
  run,    // the request was fine, carrying it out failed: exit 1
  usage,  // the request itself was wrong: exit 2
};

class Error : public std::exception {
 public:
  explicit Error(std::string message, ErrorKind kind = ErrorKind::run)
      : message_(std::move(message)), kind_(kind) {}

  /// Names the place (file, tensor, byte, line, flag). The innermost place is kept when set twice.
  Error in(std::string place) &&;
  Error hint(std::string advice) &&;

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& place() const { return place_; }
  const std::string& advice() const { return advice_; }
  const char* what() const noexcept override { return message_.c_str(); }

  /// "error: ...\n  in   ...\n  try  ...\n", leaving out lines that have nothing to say. Control characters
  /// in the texts are escaped: they may come from a hostile file.
  std::string render() const;

 private:
  std::string message_, place_, advice_;
  ErrorKind kind_;
};

inline Error usage_error(std::string message) { return Error(std::move(message), ErrorKind::usage); }

/// "there is no lens "x"" with the nearest known names as advice.
Error unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known,
                   std::string_view list_command = {});

/// Printable form of text from outside: control characters and invalid UTF-8 as \xNN, marks that reverse the
/// writing direction as \uNNNN; at most `limit` bytes, and three dots where the text goes on.
std::string printable(std::string_view text, size_t limit = 120);

}  // namespace rankscope
