// Figures by cairo: one drawing, two kinds of file. No reader needs the font: an SVG holds the outlines of
// its letters, a PDF the font itself with its letters' meanings, so that its text can be searched and copied.
#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "report/axis.h"
#include "report/figure.h"

namespace rankscope {
namespace {

struct Colour {
  double r, g, b;
};
// Okabe and Ito: told apart by colour-blind readers; with the dashes also on a grey printer.
constexpr std::array<Colour, 7> kColours{{{0.000, 0.447, 0.698},
                                          {0.835, 0.369, 0.000},
                                          {0.000, 0.620, 0.451},
                                          {0.800, 0.475, 0.655},
                                          {0.902, 0.624, 0.000},
                                          {0.337, 0.706, 0.914},
                                          {0.250, 0.250, 0.250}}};
const std::array<std::vector<double>, 4> kDashes{{{}, {4, 2}, {1, 2}, {6, 2, 1, 2}}};
constexpr Colour kInk{0.1, 0.1, 0.1}, kGrid{0.88, 0.88, 0.88};
constexpr double kText = 7.5, kPad = 4, kTick = 3, kLegendGap = 5;  // the gap: half a number stands there

struct Box {
  double left, top, right, bottom;
};

class Drawing {
 public:
  Drawing(cairo_surface_t* surface, const std::vector<FigureCurve>& curves, const FigureStyle& style)
      : cr_(cairo_create(surface), cairo_destroy), curves_(curves), style_(style) {
    cairo_select_font_face(cr(), "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr(), kText);
    cairo_set_line_join(cr(), CAIRO_LINE_JOIN_ROUND);
  }

  void draw() {
    make_axes();
    lay_out();
    if (svg()) {  // a page may be dark
      cairo_set_source_rgb(cr(), 1, 1, 1);
      cairo_paint(cr());
    }
    draw_grid();
    cairo_save(cr());
    cairo_rectangle(cr(), box_.left, box_.top - 2, box_.right - box_.left, box_.bottom - box_.top + 4);
    cairo_clip(cr());
    for (size_t i = 0; i < curves_.size(); ++i) draw_curve(i);
    cairo_restore(cr());
    for (size_t i = 0; i < curves_.size(); ++i) draw_dots(i);
    draw_labels();
    draw_legend();
    if (cairo_status(cr()) != CAIRO_STATUS_SUCCESS) throw Error(cairo_status_to_string(cairo_status(cr())));
  }

 private:
  cairo_t* cr() { return cr_.get(); }
  bool svg() { return cairo_surface_get_type(cairo_get_target(cr())) == CAIRO_SURFACE_TYPE_SVG; }
  void colour(Colour c, double alpha = 1) { cairo_set_source_rgba(cr(), c.r, c.g, c.b, alpha); }
  static Colour colour_of(size_t i) { return kColours[i % kColours.size()]; }

  bool drawable(const FigurePoint& p) const {
    return (!style_.log_x || p.x > 0) && (!style_.log_y || p.y > 0);
  }

  void make_axes() {
    double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
    for (const FigureCurve& curve : curves_)
      for (const FigurePoint& p : curve.points) {
        if (!drawable(p)) continue;
        x0 = std::min(x0, p.x);
        x1 = std::max(x1, p.x);
        y0 = std::min(y0, style_.log_y && p.low <= 0 ? p.y : p.low);
        y1 = std::max(y1, p.high);
      }
    if (!(x1 >= x0))
      throw Error("nothing can be drawn on these axes").hint("a logarithmic axis shows values above 0 only");
    std::vector<double> places;
    for (const FigureCurve& curve : curves_)
      for (const FigurePoint& p : curve.points)
        if (drawable(p)) places.push_back(p.x);
    const auto width = [&](const std::string& text) { return width_of(text); };
    const double room = style_.width - 6 * kText;  // about what the numbers of the other axis leave
    x_ = axis_at(places, style_.log_x, room, width)
             .value_or(nice_axis(x0, x1, style_.log_x, std::max(2, static_cast<int>(style_.width / 36))));
    y_ = nice_axis(y0, y1, style_.log_y, std::max(2, static_cast<int>(style_.height / 28)));
  }

  double width_of(const std::string& text) {
    cairo_text_extents_t extents;
    cairo_text_extents(cr(), text.c_str(), &extents);
    return extents.x_advance;
  }

  void lay_out() {
    double widest = 0;
    for (const double tick : y_.ticks) widest = std::max(widest, width_of(tick_text(tick)));
    const double label = style_.y_label.empty() ? 0 : kText + kPad;
    for (const FigureCurve& c : curves_)
      if (!c.name.empty()) legend_ = std::max(legend_, width_of(c.name) + 26);
    box_ = {kPad + label + widest + kTick + 2, kPad + (style_.title.empty() ? 2 : kText + kPad),
            style_.width - kPad - width_of(tick_text(x_.ticks.back())) / 2,
            style_.height - kPad - 2 * kText - kTick - 4};
    // A legend that would cover the curves goes above them, in as many rows as it needs.
    if (curves_.size() < 2) return;
    columns_ = std::max(1, static_cast<int>((style_.width - 2 * kPad) / legend_));
    rows_ = (static_cast<int>(curves_.size()) + columns_ - 1) / columns_;
    box_.top += rows_ * (kText + 3) + kLegendGap;
    if (box_.right - box_.left < 20 || box_.bottom - box_.top < 20)
      throw Error("the figure is too small for its labels").hint("a larger --size");
  }

  double px(double x) const { return box_.left + (box_.right - box_.left) * x_.place(x); }
  double py(double y) const { return box_.bottom - (box_.bottom - box_.top) * y_.place(y); }

  void text(const std::string& words, double x, double y, double align) {
    cairo_move_to(cr(), x - align * width_of(words), y);
    cairo_show_text(cr(), words.c_str());
  }

  void line(double x0, double y0, double x1, double y1) {
    cairo_move_to(cr(), x0, y0);
    cairo_line_to(cr(), x1, y1);
    cairo_stroke(cr());
  }

  void draw_grid() {
    cairo_set_line_width(cr(), 0.5);
    for (const double tick : y_.ticks) {
      colour(kGrid);
      line(box_.left, py(tick), box_.right, py(tick));
      colour(kInk);
      text(tick_text(tick), box_.left - kTick - 1, py(tick) + kText * 0.35, 1);
    }
    for (const double tick : x_.ticks) {
      colour(kInk);
      line(px(tick), box_.bottom, px(tick), box_.bottom + kTick);
      text(tick_text(tick), px(tick), box_.bottom + kTick + kText, 0.5);
    }
    line(box_.left, box_.bottom, box_.right, box_.bottom);
  }

  void draw_curve(size_t i) {
    std::vector<FigurePoint> points;
    std::copy_if(curves_[i].points.begin(), curves_[i].points.end(), std::back_inserter(points),
                 [&](const FigurePoint& p) { return drawable(p); });
    if (points.empty()) return;
    const auto bottom = [&](const FigurePoint& p) {
      return py(style_.log_y ? std::max(p.low, y_.low) : p.low);
    };
    if (std::any_of(points.begin(), points.end(), [](const FigurePoint& p) { return p.high > p.low; })) {
      for (const FigurePoint& p : points) cairo_line_to(cr(), px(p.x), py(p.high));
      for (auto p = points.rbegin(); p != points.rend(); ++p) cairo_line_to(cr(), px(p->x), bottom(*p));
      cairo_close_path(cr());
      colour(colour_of(i), 0.18);
      cairo_fill(cr());
    }
    set_pen(i);
    for (const FigurePoint& p : points) cairo_line_to(cr(), px(p.x), py(p.y));
    cairo_stroke(cr());
    cairo_set_dash(cr(), nullptr, 0, 0);
  }

  void set_pen(size_t i) {
    const std::vector<double>& dash = kDashes[(i / kColours.size()) % kDashes.size()];
    colour(colour_of(i));
    cairo_set_line_width(cr(), 1.1);
    cairo_set_dash(cr(), dash.data(), static_cast<int>(dash.size()), 0);
  }

  void draw_dots(size_t i) {
    colour(colour_of(i));
    for (const FigurePoint& p : curves_[i].points)
      if (drawable(p)) {
        cairo_arc(cr(), px(p.x), py(p.y), 1.5, 0, 2 * M_PI);
        cairo_fill(cr());
      }
  }

  void draw_labels() {
    colour(kInk);
    const double middle = (box_.left + box_.right) / 2;
    text(style_.x_label, middle, style_.height - kPad, 0.5);
    if (!style_.title.empty()) text(style_.title, style_.width / 2, kPad + kText, 0.5);
    if (style_.y_label.empty()) return;
    cairo_save(cr());
    cairo_translate(cr(), kPad + kText, (box_.top + box_.bottom) / 2);
    cairo_rotate(cr(), -M_PI / 2);
    text(style_.y_label, 0, 0, 0.5);
    cairo_restore(cr());
  }

  void draw_legend() {
    for (size_t i = 0; rows_ > 0 && i < curves_.size(); ++i) {
      const double x = kPad + static_cast<double>(static_cast<int>(i) % columns_) * legend_;
      const double row = static_cast<double>(static_cast<int>(i) / columns_);
      const double y = box_.top - kLegendGap - (rows_ - row) * (kText + 3) + kText;
      set_pen(i);
      line(x, y - kText * 0.3, x + 14, y - kText * 0.3);
      cairo_set_dash(cr(), nullptr, 0, 0);
      colour(kInk);
      text(curves_[i].name, x + 17, y, 0);
    }
  }

  std::unique_ptr<cairo_t, void (*)(cairo_t*)> cr_;
  const std::vector<FigureCurve>& curves_;
  const FigureStyle& style_;
  FigureAxis x_, y_;
  Box box_{};
  double legend_ = 0;
  int columns_ = 1, rows_ = 0;
};

cairo_status_t append(void* to, const unsigned char* bytes, unsigned int count) {
  static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(bytes), count);
  return CAIRO_STATUS_SUCCESS;
}

// Cairo writes six decimals of a point; two are finer than any printer.
std::string shortened(const std::string& svg) {
  std::string out;
  int decimals = -1;  // of the number at hand, -1 outside of its fraction
  for (const char c : svg) {
    const bool digit = c >= '0' && c <= '9';
    decimals = c == '.' ? 0 : digit && decimals >= 0 ? decimals + 1 : -1;
    if (decimals <= 2) out += c;
  }
  return out;
}

}  // namespace

void draw_figure(const std::filesystem::path& out, const std::vector<FigureCurve>& curves,
                 const FigureStyle& style) {
  const std::string kind = out.extension().string();
  if (kind != ".svg" && kind != ".pdf")
    throw usage_error("expected a file that ends in .svg or .pdf").in(out.string());
  std::string bytes;
  {
    const std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)> surface(
        kind == ".svg" ? cairo_svg_surface_create_for_stream(append, &bytes, style.width, style.height)
                       : cairo_pdf_surface_create_for_stream(append, &bytes, style.width, style.height),
        cairo_surface_destroy);
    // 1.4 is what every printer and every journal takes.
    if (kind == ".pdf") cairo_pdf_surface_restrict_to_version(surface.get(), CAIRO_PDF_VERSION_1_4);
    Drawing(surface.get(), curves, style).draw();
    cairo_surface_finish(surface.get());
    if (cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS)
      throw Error(cairo_status_to_string(cairo_surface_status(surface.get()))).in(out.string());
  }
  write_file(out, kind == ".svg" ? shortened(bytes) : bytes);
}

}  // namespace rankscope
