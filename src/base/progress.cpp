#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <string_view>

#include "base/error.h"

namespace rankscope {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The first `count` characters; a character that came in several bytes is kept whole.
std::string_view first_characters(std::string_view text, size_t count) {
  size_t i = 0;
  for (; i < text.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (starts && count-- == 0) break;
  }
  return text.substr(0, i);
}

}  // namespace

Progress::Progress(std::ostream& out, bool enabled, int width, Clock clock)
    : out_(out),
      enabled_(enabled),
      width_(std::max(width, 20)),
      clock_(clock ? std::move(clock) : Clock(steady_seconds)),
      started_(clock_()) {}

Progress::~Progress() {
  try {
    clear();
  } catch (...) {  // NOLINT: a terminal that went away is no reason to end the program
  }
}

bool Progress::due() const { return enabled_ && !(drawn_ && clock_() - drawn_at_ < 0.1); }

void Progress::draw(const std::string& line) {
  // The last column stays free: some terminals wrap as soon as it is filled.
  out_ << "\r\x1b[K" << first_characters(line, static_cast<size_t>(width_) - 1) << std::flush;
  drawn_ = true;
  drawn_at_ = clock_();
}

void Progress::update(int64_t done, int64_t total, const std::string& what) {
  if (total <= 0 || !due()) return;
  done = std::clamp<int64_t>(done, 0, total);
  const double elapsed = clock_() - started_;
  std::string line = fmt::format("{:3d}%  {}/{}", 100 * done / total, done, total);
  if (done > 0 && elapsed > 0) {
    const double rate = static_cast<double>(done) / elapsed;
    line += fmt::format("  {:.3g}/s  {} left", rate, duration_text(static_cast<double>(total - done) / rate));
  }
  draw(line + "  " + printable(what));
}

void Progress::update(double fraction, const std::string& what) {
  if (!due()) return;
  fraction = std::clamp(fraction, 0.0, 1.0);
  const double elapsed = clock_() - started_;
  std::string line = fmt::format("{:3.0f}%", std::floor(100 * fraction));
  if (fraction > 0 && elapsed > 0)
    line += fmt::format("  {} left", duration_text(elapsed * (1 - fraction) / fraction));
  draw(line + "  " + printable(what));
}

void Progress::clear() {
  if (!drawn_) return;
  out_ << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

bool progress_wanted(bool quiet) {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";  // knows no escape sequences
  return !quiet && !dumb && ::isatty(STDERR_FILENO) == 1;
}

std::string duration_text(double seconds) {
  const auto s = std::llround(std::clamp(seconds, 0.0, 3.6e8));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02d}s", s / 60, s % 60);
  return fmt::format("{}h{:02d}m", s / 3600, s / 60 % 60);
}

}  // namespace rankscope
