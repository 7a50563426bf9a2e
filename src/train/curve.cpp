#include "train/curve.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace rankscope {
namespace {

// The step of a whole line; nothing for one that a crash cut short.
std::optional<int64_t> step_of(const std::string& line) {
  const Json value = Json::parse(line, nullptr, false);
  if (value.is_discarded() || !value.is_object() || !value.contains("step") ||
      !value["step"].is_number_integer())
    return {};
  return value["step"].get<int64_t>();
}

}  // namespace

Curve::Curve(const std::filesystem::path& file, int64_t step) : file_(file) {
  std::string kept, line;
  if (std::filesystem::is_regular_file(file)) {
    std::ifstream before(file);
    while (std::getline(before, line))
      if (const auto at = step_of(line); at && *at <= step && step > 0) kept += line + "\n";
  }
  write_file(file, kept);
  out_.open(file, std::ios::app);
}

void Curve::add(const CurvePoint& p) {
  std::string line = fmt::format("{{\"step\":{},\"loss\":{},\"lr\":{}", p.step, p.loss, p.lr);
  if (p.test_mse)
    line +=
        fmt::format(",\"test_mse\":{},\"test_mse_stderr\":{}", *p.test_mse, p.test_mse_stderr.value_or(0));
  out_ << line << "}\n" << std::flush;
  if (!out_) throw Error("cannot write the learning curve").in(file_.string()).hint("is the disk full?");
}

}  // namespace rankscope
