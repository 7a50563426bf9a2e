#include "report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "report/text.h"

namespace rankscope {
namespace {

constexpr int kLabel = 10;  // columns for the numbers of the y axis

struct Scale {
  double low = 0, high = 1;
  bool log = false;
  bool takes(double v) const { return std::isfinite(v) && (!log || v > 0); }
  double place(double v) const {  // 0 at the low end, 1 at the high one
    const double at = log ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low);
    return std::isfinite(at) ? std::clamp(at, 0.0, 1.0) : 0;  // ends so far apart that a double cannot tell
  }
  double value(double place) const {
    return log ? low * std::pow(high / low, place) : low + place * (high - low);
  }
};

Scale scale_of(const std::vector<PlotCurve>& curves, bool log, bool vertical) {
  Scale s{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), log};
  for (const PlotCurve& curve : curves)
    for (const auto& [x, y] : curve.points) {
      const double v = vertical ? y : x;
      if (!s.takes(v)) continue;
      s.low = std::min(s.low, v);
      s.high = std::max(s.high, v);
    }
  if (s.low == s.high) {  // one value: room on both sides
    s.low = log ? s.low / 2 : s.low - 1;
    s.high = log ? s.high * 2 : s.high + 1;
  }
  return s;
}

const char* mark(const PlotCurve& curve, bool unicode) {
  static constexpr std::array<const char*, 6> kFull{"●", "■", "▲", "◆", "▼", "★"};
  static constexpr std::array<const char*, 6> kOpen{"○", "□", "△", "◇", "▽", "☆"};
  static constexpr std::array<const char*, 6> kUpper{"A", "B", "C", "D", "E", "F"};
  static constexpr std::array<const char*, 6> kLower{"a", "b", "c", "d", "e", "f"};
  const size_t i = static_cast<size_t>(curve.shape) % kFull.size();
  if (unicode) return curve.open ? kOpen[i] : kFull[i];
  return curve.open ? kLower[i] : kUpper[i];
}

// Cells of 2 x 4 dots; a mark hides the dots of its cell.
class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width), height_(height), dots_(static_cast<size_t>(width * height)), marks_(dots_.size()) {}

  void dot(double x, double y) {
    const int column = std::clamp(static_cast<int>(std::lround(x * (2 * width_ - 1))), 0, 2 * width_ - 1);
    const int row =
        std::clamp(static_cast<int>(std::lround((1 - y) * (4 * height_ - 1))), 0, 4 * height_ - 1);
    static constexpr std::array<std::array<unsigned char, 4>, 2> kBits{
        {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
    dots_[index(column / 2, row / 4)] |= kBits[static_cast<size_t>(column % 2)][static_cast<size_t>(row % 4)];
  }
  void line(double x0, double y0, double x1, double y1) {
    const double reach = std::max(std::fabs(x1 - x0) * 2 * width_, std::fabs(y1 - y0) * 4 * height_);
    const int steps = std::max(1, static_cast<int>(std::ceil(reach)));
    for (int i = 0; i <= steps; ++i) {
      const double t = static_cast<double>(i) / steps;
      dot(x0 + t * (x1 - x0), y0 + t * (y1 - y0));
    }
  }
  void put(double x, double y, const char* text) {
    const int column = std::clamp(static_cast<int>(x * width_), 0, width_ - 1);
    const int row = std::clamp(static_cast<int>((1 - y) * height_), 0, height_ - 1);
    marks_[index(column, row)] = text;
  }
  std::string row(int r, bool unicode) const {
    std::string out;
    for (int c = 0; c < width_; ++c) {
      const size_t i = index(c, r);
      if (marks_[i] != nullptr)
        out += marks_[i];
      else if (dots_[i] == 0)
        out += ' ';
      else if (!unicode)
        out += '.';
      else  // U+2800 and the dots
        out += {static_cast<char>(0xE2), static_cast<char>(0xA0 | (dots_[i] >> 6)),
                static_cast<char>(0x80 | (dots_[i] & 0x3F))};
    }
    return out.substr(0, out.find_last_not_of(' ') + 1);
  }

 private:
  size_t index(int column, int row) const { return static_cast<size_t>(row * width_ + column); }
  int width_, height_;
  std::vector<unsigned char> dots_;
  std::vector<const char*> marks_;
};

}  // namespace

std::vector<std::string> draw_plot(const std::vector<PlotCurve>& curves, const PlotAxes& axes, int width,
                                   int height, bool unicode) {
  std::vector<std::vector<std::pair<double, double>>> placed(curves.size());
  std::vector<PlotCurve> kept = curves;
  const Scale any_x{0, 1, axes.log_x}, any_y{0, 1, axes.log_y};
  bool empty = true;
  for (PlotCurve& curve : kept) {
    std::erase_if(curve.points,
                  [&](const auto& p) { return !any_x.takes(p.first) || !any_y.takes(p.second); });
    empty = empty && curve.points.empty();
  }
  if (empty) return {};
  const Scale x = scale_of(kept, axes.log_x, false), y = scale_of(kept, axes.log_y, true);
  const int columns = std::max(20, width - kLabel - 3);
  Canvas canvas(columns, height);
  for (size_t i = 0; i < kept.size(); ++i)
    for (const auto& [px, py] : kept[i].points) placed[i].emplace_back(x.place(px), y.place(py));
  for (size_t i = 0; i < kept.size(); ++i)
    for (size_t k = 1; kept[i].line && k < placed[i].size(); ++k)
      canvas.line(placed[i][k - 1].first, placed[i][k - 1].second, placed[i][k].first, placed[i][k].second);
  for (size_t i = kept.size(); i-- > 0;)  // the first curves are drawn last, on top
    for (const auto& [px, py] : placed[i])
      if (kept[i].marks) canvas.put(px, py, mark(kept[i], unicode));

  std::vector<std::string> out;
  out.push_back(fmt::format("{}{}", terminal_text(axes.y), axes.log_y ? " (log)" : ""));
  for (int r = 0; r < height; ++r) {
    const bool labelled = r == 0 || r == height - 1 || (height > 8 && r == height / 2);
    // The outer rows reach to the ends of the data, and say these.
    const double place = r == 0 ? 1 : r == height - 1 ? 0 : 1 - (r + 0.5) / height;
    const std::string label = labelled ? number_text(y.value(place)) : "";
    const std::string row = canvas.row(r, unicode);
    out.push_back(
        fmt::format("{} {}{}{}", pad_left(label, kLabel), unicode ? "│" : "|", row.empty() ? "" : " ", row));
  }
  std::string rule;
  for (int c = 0; c <= columns; ++c) rule += unicode ? "─" : "-";
  out.push_back(fmt::format("{} {}{}", pad_left("", kLabel), unicode ? "└" : "+", rule));
  const std::string left = number_text(x.low), right = number_text(x.high);
  const std::string title = fmt::format("{}{}", terminal_text(axes.x), axes.log_x ? " (log)" : "");
  const int gap = columns - display_width(left) - display_width(right);
  const int before = (gap - display_width(title)) / 2;
  out.push_back(fmt::format("{}   {}{}{}", pad_left("", kLabel), left,
                            pad_right(pad_right("", std::max(1, before)) + title, gap), right));
  for (const PlotCurve& curve : kept)
    if (!curve.points.empty())
      out.push_back(fmt::format("{} {}",
                                pad_left(curve.marks ? mark(curve, unicode)
                                         : unicode   ? "⠒⠒"
                                                     : "..",
                                         12),
                                terminal_text(curve.label)));
  return out;
}

}  // namespace rankscope
