// Metrics of states that no pass produced: sums over paths, operators applied. Each goes through the lenses
// that read tokens, and is compared with the output it belongs to.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/table.h"
#include "base/tensor_fwd.h"
#include "lenses/lens.h"
#include "model/batch.h"
#include "pass/site_lens.h"

namespace rankscope {

/// One state, batch by batch, under the lenses residual and spectra and whatever else is given.
class StreamMetrics {
 public:
  StreamMetrics(std::string variant, const Site& site, const ModelSpec& spec);
  StreamMetrics(StreamMetrics&&) = delete;
  const std::string& variant() const { return variant_; }

  void see(const at::Tensor& x, const Batch& batch);
  void sample(std::string_view metric, int64_t sample, double value);
  void value(std::string_view metric, double value, double stderr_, int64_t n);
  void finish(ResultTable& table);

 private:
  std::string variant_;
  Crossing crossing_;
  std::deque<SiteLens> lenses_;  // which stay where they are
  SiteRecorder own_;
};

/// How a metric of the lenses residual and spectra is averaged; arithmetically, if it is none of theirs.
Mean mean_of(const std::string& metric);

/// Root mean square of each sample's entries.
std::vector<double> rms_by_sample(const at::Tensor& x, const Batch& batch);

/// output_kl of each state against `full`, all [N, d] after the final norm: one value a sample
/// (pass/output.h).
std::vector<std::vector<double>> output_kl(const at::Tensor& full, const std::vector<at::Tensor>& states,
                                           const ModelSpec& spec, WeightSource& source, const Batch& batch);

}  // namespace rankscope
