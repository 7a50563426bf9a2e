// Collects what lenses report at one site and turns it into rows, one set per variant that shares the state.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/array.h"
#include "lenses/lens.h"

namespace rankscope {

struct Site {
  std::string name;  // "blocks.3.hook_resid_post"
  int layer = -1;
  int depth = -1;
};

class SiteRecorder : public Recorder {
 public:
  /// `arrays` takes the spectra, where they are wanted.
  SiteRecorder(const Lens& lens, Site site, std::vector<Name> variants, std::vector<NamedArray>* arrays)
      : lens_(lens), site_(std::move(site)), variants_(std::move(variants)), arrays_(arrays) {}

  void sample(std::string_view metric, int64_t sample, double value, int head,
              std::string_view tokens) override;
  void value(std::string_view metric, double value, double stderr_, int64_t n, int head,
             std::string_view tokens) override;
  void spectrum(std::string_view name, int head, std::span<const double> sigma) override;

  /// Aggregates by each metric's own mean and appends the rows.
  void flush(ResultTable& table);

 private:
  struct Values {
    std::vector<int64_t> samples;
    std::vector<double> values;
  };
  Mean mean_of(const std::string& metric) const;

  const Lens& lens_;
  Site site_;
  std::vector<Name> variants_;
  std::map<std::tuple<Name, int, Name>, Values> samples_;  // metric, head, tokens
  std::vector<Row> rows_;
  std::map<std::string, NamedArray> spectra_;
  std::vector<NamedArray>* arrays_;
};

}  // namespace rankscope
