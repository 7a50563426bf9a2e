#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>

#include "base/error.h"

namespace rankscope {
namespace {

struct Character {
  uint32_t code;
  size_t bytes;
};

// The text is valid UTF-8 by the time it comes here (terminal_text); a stray byte counts as one column.
Character first_character(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(s[i])); };
  const uint32_t lead = byte(0);
  const size_t n = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (n == 1 || n > s.size()) return {lead, 1};
  uint32_t code = lead & (0xFFu >> (n + 1));
  for (size_t i = 1; i < n; ++i) code = (code << 6) | (byte(i) & 0x3F);
  return {code, n};
}

struct Range {
  uint32_t first, last;
};
constexpr std::array<Range, 12> kNoWidth{{{0x0300, 0x036F},
                                          {0x0483, 0x0489},
                                          {0x0591, 0x05BD},
                                          {0x064B, 0x065F},
                                          {0x1AB0, 0x1AFF},
                                          {0x1DC0, 0x1DFF},
                                          {0x200B, 0x200F},
                                          {0x202A, 0x202E},
                                          {0x2060, 0x206F},
                                          {0x20D0, 0x20FF},
                                          {0xFE00, 0xFE0F},
                                          {0xE0100, 0xE01EF}}};
constexpr std::array<Range, 11> kWide{{{0x1100, 0x115F},
                                       {0x2E80, 0x303E},
                                       {0x3041, 0xA4CF},
                                       {0xAC00, 0xD7A3},
                                       {0xF900, 0xFAFF},
                                       {0xFE30, 0xFE6F},
                                       {0xFF00, 0xFF60},
                                       {0xFFE0, 0xFFE6},
                                       {0x1F300, 0x1F64F},
                                       {0x1F680, 0x1FAFF},
                                       {0x20000, 0x3FFFD}}};

template <size_t N>
bool within(const std::array<Range, N>& ranges, uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const Range& r) { return code >= r.first && code <= r.last; });
}

int columns(uint32_t code) { return within(kNoWidth, code) ? 0 : within(kWide, code) ? 2 : 1; }

}  // namespace

std::string terminal_text(std::string_view text, size_t limit) { return printable(text, limit); }

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Character c = first_character(text);
    width += columns(c.code);
    text.remove_prefix(c.bytes);
  }
  return width;
}

std::string_view fit(std::string_view text, int width) {
  size_t used = 0;
  for (int left = width; used < text.size();) {
    const Character c = first_character(text.substr(used));
    left -= columns(c.code);
    if (left < 0) break;
    used += c.bytes;
  }
  return text.substr(0, used);
}

namespace {
std::string cut(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  return width < 1 ? std::string() : std::string(fit(text, width - 1)) + "~";
}
std::string spaces(int count) { return std::string(static_cast<size_t>(std::max(count, 0)), ' '); }
}  // namespace

std::string pad_right(std::string_view text, int width) {
  std::string out = cut(text, width);
  const int used = display_width(out);
  return std::move(out) + spaces(width - used);
}

std::string pad_left(std::string_view text, int width) {
  const std::string out = cut(text, width);
  return spaces(width - display_width(out)) + out;
}

namespace {

// The longest end that fits `width` columns.
std::string_view fit_end(std::string_view text, int width) {
  for (int over = display_width(text) - width; over > 0 && !text.empty();) {
    const Character c = first_character(text);
    over -= columns(c.code);
    text.remove_prefix(c.bytes);
  }
  return text;
}

// A name longer than `width` keeps its last `end` columns and as much of its beginning as fits.
std::string without_middle(const std::string& name, int width, int end) {
  if (display_width(name) <= width) return name;
  return fmt::format("{}~{}", fit(name, width - 1 - end), fit_end(name, end));
}

size_t count_different(const std::vector<std::string>& names) {
  return std::set<std::string>(names.begin(), names.end()).size();
}

}  // namespace

std::vector<std::string> short_names(const std::vector<std::string>& all, int width) {
  // Names may come from anybody's table: the search below is for as many as a person compares.
  constexpr int kLongest = 160;
  constexpr size_t kMostSearched = 64;
  std::vector<std::string> names;
  int longest = 0;
  for (const std::string& name : all) {
    names.push_back(without_middle(name, kLongest, kLongest / 2));
    longest = std::max(longest, display_width(names.back()));
  }
  if (names.size() > kMostSearched) return names;
  const size_t different = count_different(names);
  for (int room = std::max(width, 1); room < longest; ++room) {
    // First as much of the end as of the beginning, then more of the end, as names begin alike, then less.
    const int most = room - 1, half = most / 2;
    for (int i = 0; i <= most; ++i) {
      const int end = half + i <= most ? half + i : most - i;
      std::vector<std::string> cut;
      for (const std::string& name : names) cut.push_back(without_middle(name, room, end));
      if (count_different(cut) == different) return cut;
    }
  }
  return names;
}

std::vector<std::string> wrap(std::string_view text, int width) {
  width = std::max(width, 2);  // a wide character needs two
  std::vector<std::string> lines;
  std::string line;
  int used = 0;
  const auto end_line = [&] {
    lines.push_back(std::move(line));
    line.clear();
    used = 0;
  };
  while (!text.empty()) {
    const size_t space = text.find(' ');
    std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    int size = display_width(word);
    if (used > 0 && used + 1 + size > width) end_line();
    for (; size > width; size = display_width(word)) {
      const std::string_view piece = fit(word, width);
      lines.emplace_back(piece);
      word.remove_prefix(piece.size());
    }
    if (used > 0) line += ' ', ++used;
    line.append(word);
    used += size;
  }
  if (!line.empty()) end_line();
  return lines;
}

std::string sparkline(std::span<const double> values, int width, bool unicode) {
  static constexpr std::array<const char*, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> kPlain{"_", ".", ":", "-", "=", "+", "*", "#"};
  if (values.empty() || width < 1) return {};
  const size_t count = std::min(values.size(), static_cast<size_t>(width));
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    double sum = 0;
    int finite = 0;
    for (size_t k = i * values.size() / count; k < (i + 1) * values.size() / count; ++k) {
      if (std::isnan(values[k])) continue;
      sum += std::clamp(values[k], 0.0, 1.0);
      ++finite;
    }
    if (finite == 0) {
      out += ' ';
      continue;
    }
    const auto level = static_cast<size_t>(std::min(7.0, sum / finite * 8));
    out += unicode ? kBars[level] : kPlain[level];
  }
  return out;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "-";
  const bool thousands =
      std::fabs(value) >= 1000 && std::fabs(value) < 1e6;  // 12345 reads better than 1.23e+04
  return thousands ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

}  // namespace rankscope
