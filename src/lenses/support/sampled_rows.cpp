#include "lenses/support/sampled_rows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/philox.h"
#include "lenses/support/host.h"
#include "lenses/support/on_device.h"

namespace rankscope {

std::array<std::vector<int64_t>, kGroups> draw_rows(uint64_t seed, int64_t sample, int64_t length) {
  constexpr uint32_t kStream = 0x726f7773;  // "rows"
  const Philox random{seed, kStream, static_cast<uint32_t>(sample)};
  std::vector<int64_t> rows(static_cast<size_t>(length));
  std::iota(rows.begin(), rows.end(), 0);
  for (size_t i = 0; i < kGroups * kGroupRows; ++i)  // the first steps of a shuffle
    std::swap(rows[i], rows[i + random.below(rows.size() - i, i)]);
  std::array<std::vector<int64_t>, kGroups> groups;
  auto from = rows.begin();
  for (std::vector<int64_t>& group : groups) {
    group.assign(from, from + kGroupRows);
    std::sort(group.begin(), group.end());
    from += kGroupRows;
  }
  return groups;
}

struct SampledRows::State {
  std::array<std::vector<int64_t>, kGroups> wanted;
  std::array<at::Tensor, kGroups> rows;
};

SampledRows::SampledRows(uint64_t seed, int64_t sample, int64_t length) : state_(std::make_unique<State>()) {
  state_->wanted = draw_rows(seed, sample, length);
}
SampledRows::~SampledRows() = default;
SampledRows::SampledRows(SampledRows&&) noexcept = default;
SampledRows& SampledRows::operator=(SampledRows&&) noexcept = default;

void SampledRows::add(const at::Tensor& tile, int64_t first_row) {
  const int64_t end = first_row + tile.size(1);
  for (size_t g = 0; g < kGroups; ++g) {
    const std::vector<int64_t>& wanted = state_->wanted[g];
    const auto from = std::lower_bound(wanted.begin(), wanted.end(), first_row);
    const auto to = std::lower_bound(from, wanted.end(), end);
    if (from == to) continue;
    std::vector<int64_t> local(from, to);
    for (int64_t& row : local) row -= first_row;
    const at::Tensor index = sent(at::tensor(local, at::kLong), tile.device());
    const at::Tensor there = tile.detach().index_select(1, index);
    const at::Tensor chosen = stays_on_device(tile, true) ? there : host(there);
    at::Tensor& rows = state_->rows[g];
    if (!rows.defined()) rows = at::empty({tile.size(0), kGroupRows, tile.size(2)}, chosen.options());
    rows.narrow(1, from - wanted.begin(), to - from).copy_(chosen);
  }
}

const at::Tensor& SampledRows::group(int64_t g) const { return state_->rows[static_cast<size_t>(g)]; }

}  // namespace rankscope
