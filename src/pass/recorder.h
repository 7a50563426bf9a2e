// Collects what lenses report at one site and turns it into rows, one set per variant that shares the state.
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "lenses/lens.h"
#include "pass/crossing.h"

namespace rankscope {

struct Site {
  std::string name;  // "blocks.3.hook_resid_post"
  int layer = -1;
  int depth = -1;
  int head = -1;            // what is said of all heads together is filed under this one
  std::string stream = {};  // of a network that has several
  std::string like = {};    // the site whose lenses read this one; empty: its own
};

/// Takes a lens's tensors, in the shapes of lenses/lens.h, from whatever device they are on; they arrive by
/// the crossing, so the recorder must be there until that has read them.
class SiteRecorder {
 public:
  SiteRecorder(const Lens& lens, Site site, std::vector<Name> variants);
  SiteRecorder(SiteRecorder&&) = delete;

  /// The numbers of some samples, and what is no mean over samples. An undefined tensor says nothing.
  void add(const at::Tensor& numbers, std::span<const int64_t> samples, Crossing& crossing,
           DeviceEvent made = {});
  void add_totals(const at::Tensor& totals, Crossing& crossing);

  /// One number, for those who have no lens.
  void sample(std::string_view metric, int64_t sample, double value);
  void value(std::string_view metric, double value, double stderr_, int64_t n);

  /// Aggregates what has arrived by each metric's own mean and appends the rows.
  void flush(ResultTable& table);

 private:
  struct Values {
    std::vector<int64_t> samples;
    std::vector<double> values;
  };
  using Key = std::tuple<Name, int, Name>;  // metric, head, tokens
  Mean mean_of(const Name& metric) const;
  void file(const double* values, int64_t rules, const std::vector<int64_t>& samples, int64_t slots);
  void file_totals(const double* values, int64_t slots);
  void require_shape(const at::Tensor& t, const std::vector<int64_t>& shape) const;

  const Lens& lens_;
  Site site_;
  std::vector<Name> variants_, metrics_;
  std::map<Key, Values> samples_;
  std::vector<Row> rows_;
};

}  // namespace rankscope
