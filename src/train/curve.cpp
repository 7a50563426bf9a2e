#include "train/curve.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace rankscope {
namespace {

// The step of a whole line; nothing for one that a crash cut short.
std::optional<int64_t> step_of(std::string_view line) {
  try {
    const Json value = parse_json(line, "curve.jsonl");
    if (!value.is_object() || !value.contains("step") || !value["step"].is_number_integer()) return {};
    return value["step"].get<int64_t>();
  } catch (const Error&) {
    return {};
  }
}

// JSON has no word for what a trial that diverges ends with.
std::string number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

constexpr uint64_t kLargestCurve = uint64_t{1} << 28;

}  // namespace

Curve::Curve(const std::filesystem::path& file, int64_t step) : file_(file) {
  std::string kept;
  if (step > 0 && std::filesystem::is_regular_file(file)) {
    const std::string before = read_file(file, kLargestCurve);
    for (size_t at = 0, end; at < before.size(); at = end + 1) {
      end = std::min(before.find('\n', at), before.size());
      const std::string_view line = std::string_view(before).substr(at, end - at);
      if (const auto done = step_of(line); done && *done <= step) kept.append(line).append("\n");
    }
  }
  write_file(file, kept);
  out_.open(file, std::ios::app);
}

void Curve::add(const CurvePoint& p) {
  std::string line = fmt::format("{{\"step\":{},\"loss\":{},\"lr\":{}", p.step, number(p.loss), number(p.lr));
  if (p.test_mse)
    line += fmt::format(",\"test_mse\":{},\"test_mse_stderr\":{}", number(*p.test_mse),
                        number(p.test_mse_stderr.value_or(0)));
  out_ << line << "}\n" << std::flush;
  if (!out_) throw Error("cannot write the learning curve").in(file_.string()).hint("is the disk full?");
}

}  // namespace rankscope
