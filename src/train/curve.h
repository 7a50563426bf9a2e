// The learning curve of one trial: a JSON line a window, appended as training goes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>

namespace rankscope {

struct CurvePoint {
  int64_t step = 0;
  double loss = 0;
  double lr = 0;
  std::optional<double> test_mse = {}, test_mse_stderr = {};
};

class Curve {
 public:
  /// Goes on behind `step`: lines of a run that was killed after its last checkpoint are taken out.
  Curve(const std::filesystem::path& file, int64_t step);
  void add(const CurvePoint& point);

 private:
  std::filesystem::path file_;
  std::ofstream out_;
};

}  // namespace rankscope
