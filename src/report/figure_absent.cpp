// Built where cairo is missing: tables are read as ever, nothing is drawn into files.
#include "base/error.h"
#include "report/figure.h"

namespace rankscope {

void draw_figure(const std::filesystem::path& out, const std::vector<FigureCurve>&, const FigureStyle&) {
  throw Error("this program was built without cairo and draws no files")
      .in(out.string())
      .hint("leave --out away for a plot in the terminal, or install libcairo2-dev and build again");
}

}  // namespace rankscope
