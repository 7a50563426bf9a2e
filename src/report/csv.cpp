#include "report/csv.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/csv.h"

namespace rankscope {
namespace {

// Collects lines and hands them on in pieces: a sink may be a system call.
class Lines {
 public:
  explicit Lines(const TextSink& sink) : sink_(sink) {}

  Lines& text(std::string_view cell) {
    separate();
    if (cell.find_first_of(",\"\r\n'=+-@\t") == std::string_view::npos)
      buffer_.append(cell);
    else
      buffer_ += csv_cell(cell);
    return *this;
  }
  Lines& integer(int64_t value) {
    separate();
    fmt::format_to(std::back_inserter(buffer_), "{}", value);
    return *this;
  }
  Lines& index(int32_t value) { return value < 0 ? text({}) : integer(value); }
  Lines& number(double value) {
    if (std::isnan(value)) return text({});
    separate();
    fmt::format_to(std::back_inserter(buffer_), "{}", value);
    return *this;
  }
  void end_line() {
    buffer_ += '\n';
    at_start_ = true;
    if (buffer_.size() >= kPiece) flush();
  }
  void flush() {
    if (!buffer_.empty()) sink_(buffer_);
    buffer_.clear();
  }

 private:
  static constexpr size_t kPiece = 1 << 16;

  void separate() {
    if (!at_start_) buffer_ += ',';
    at_start_ = false;
  }

  const TextSink& sink_;
  std::string buffer_;
  bool at_start_ = true;
};

}  // namespace

void write_metrics_csv(const ResultTable& table, const TextSink& sink) {
  sink("variant,site,layer,head,metric,value,stderr,n,depth,tokens,stream\n");
  Lines lines(sink);
  for (const Row& r : table.rows) {
    lines.text(r.variant.str()).text(r.site.str()).index(r.layer).index(r.head).text(r.metric.str());
    lines.number(r.value).number(r.stderr_).integer(r.n).index(r.depth);
    lines.text(r.tokens.str()).text(r.stream.str()).end_line();
  }
  lines.flush();
}

void write_samples_csv(const ResultTable& table, const TextSink& sink) {
  sink("variant,site,layer,head,metric,tokens,sample,value,stream,depth\n");
  Lines lines(sink);
  for (const SampleRow& r : table.samples) {
    lines.text(r.variant.str()).text(r.site.str()).index(r.layer).index(r.head).text(r.metric.str());
    lines.text(r.tokens.str())
        .integer(r.sample)
        .number(r.value)
        .text(r.stream.str())
        .index(r.depth)
        .end_line();
  }
  lines.flush();
}

}  // namespace rankscope
