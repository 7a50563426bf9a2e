// One line on stderr that says how far the work is, how fast it goes and when it ends.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

namespace rankscope {

class Progress {
 public:
  using Clock = std::function<double()>;  // seconds; tests bring their own

  /// Writes nothing when not enabled.
  Progress(std::ostream& out, bool enabled, int width = 80, Clock clock = {});
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Redraws at most ten times a second, so it may be called as often as is handy.
  void update(int64_t done, int64_t total, const std::string& what);

  /// The same for work that is not counted in equal pieces: "  34%  1m05s left  4/15 trials".
  void update(double fraction, const std::string& what);

  /// Clears the line: call before writing anything else to the same terminal.
  void clear();

 private:
  bool due() const;
  void draw(const std::string& line);

  std::ostream& out_;
  bool enabled_, drawn_ = false;
  int width_;
  Clock clock_;
  double started_, drawn_at_ = -1;
};

/// Progress is for people: true when standard error is a terminal and nobody asked for quiet.
bool progress_wanted(bool quiet);

/// 7 -> "7s", 125 -> "2m05s", 7500 -> "2h05m".
std::string duration_text(double seconds);

}  // namespace rankscope
