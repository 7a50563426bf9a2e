// A figure for a paper: curves out of result tables, drawn without a browser.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/csv.h"

namespace rankscope {

struct FigurePoint {
  double x, y;
  double low, high;  // of the band; y itself where there is none
};

struct FigureCurve {
  std::string name;
  std::vector<FigurePoint> points;  // x rises
};

/// Which rows of which tables become which curves.
struct FigureRequest {
  std::string x = "depth";
  std::string y;                // a metric of metrics.csv, or a column of another table
  std::string site;             // the end of a site's name: "resid_post"
  std::vector<std::string> by;  // columns that tell the curves apart
  std::string band;             // a column, or empty
  std::vector<std::pair<std::string, std::string>> where{};  // column and a value wanted
};

struct FigureStyle {
  double width = 3.25 * 72, height = 2.2 * 72;  // points
  bool log_x = false, log_y = false;
  std::string title, x_label, y_label;
};

/// Against depth, `site` "resid_post" begins with the embeddings (depth 0) and "ln1.hook_normalized" ends
/// with the final norm. Rows with the same curve and x become their mean, with its standard error as the band
/// where `band` says stderr and there is more than one. Unknown columns, metrics and sites are errors that
/// name the nearest.
std::vector<FigureCurve> select_curves(const std::vector<CellTable>& tables, const FigureRequest& request);

/// An SVG or PDF, by the file's ending: it looks the same everywhere, because both bring their letters along.
/// The text of a PDF can be searched.
void draw_figure(const std::filesystem::path& out, const std::vector<FigureCurve>& curves,
                 const FigureStyle& style);

}  // namespace rankscope
