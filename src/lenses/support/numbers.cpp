#include "lenses/support/numbers.h"

#include <ATen/ATen.h>

namespace rankscope {

at::Tensor Numbers::tensor() const {
  return at::tensor(values_, at::kDouble).view({rules_, samples_, slots_, metrics_});
}

at::Tensor Totals::tensor() const { return at::tensor(values_, at::kDouble).view({slots_, metrics_, 3}); }

at::Tensor stacked(const std::vector<std::vector<double>>& rows) {
  std::vector<at::Tensor> tensors;
  for (const std::vector<double>& row : rows) {
    if (row.size() != rows.front().size()) return {};
    tensors.push_back(at::tensor(row, at::kDouble));
  }
  return tensors.empty() ? at::Tensor() : at::stack(tensors);
}

}  // namespace rankscope
