#include "ops/monomial_table.h"

#include <cmath>
#include <map>
#include <mutex>

namespace rankscope {
namespace {

// x^a / sqrt(a!) for every exponent a: the r-th time a channel comes, it comes with 1 / sqrt(r).
MonomialTable made(int64_t width, int64_t degree) {
  MonomialTable table;
  std::vector<int64_t> times;
  const auto add = [&](int64_t parent, int64_t channel, int64_t time) {
    table.parent.push_back(static_cast<int32_t>(parent));
    table.channel.push_back(static_cast<int32_t>(channel));
    table.factor.push_back(1 / std::sqrt(static_cast<double>(time)));
    times.push_back(time);
  };
  const auto count = [&] { return static_cast<int64_t>(table.parent.size()); };
  add(0, -1, 1);
  table.begins = {0, 1};
  for (int64_t l = 1; l <= degree; ++l) {
    const int64_t first = table.begins[static_cast<size_t>(l - 1)], end = table.begins.back();
    for (int64_t p = first; p < end; ++p) {
      const int64_t last = table.channel[static_cast<size_t>(p)];
      for (int64_t c = std::max<int64_t>(last, 0); c < width; ++c)
        add(p, c, c == last ? times[static_cast<size_t>(p)] + 1 : 1);
    }
    table.begins.push_back(count());
  }
  return table;
}

}  // namespace

PackedTable pack(const Monomials& table) {
  PackedTable packed;
  for (int64_t m = 0; m < table.count; ++m) {
    uint32_t channels = 0;
    double factor = 1;
    int64_t at = m;
    for (unsigned i = 0; i < 3; ++i) {
      const bool there = table.channel[at] >= 0;
      channels |= (there ? static_cast<uint32_t>(table.channel[at]) : kNoChannel) << 8 * i;
      if (!there) continue;
      factor *= table.factor[at];
      at = table.parent[at];
    }
    packed.channels.push_back(static_cast<int32_t>(channels));
    packed.factor.push_back(static_cast<float>(factor));
  }
  return packed;
}

std::shared_ptr<const MonomialTable> monomial_table(int64_t width, int64_t degree) {
  static std::mutex lock;
  static std::map<std::pair<int64_t, int64_t>, std::shared_ptr<const MonomialTable>> known;
  const std::scoped_lock held(lock);
  auto& table = known[{width, degree}];
  if (!table) table = std::make_shared<const MonomialTable>(made(width, degree));
  return table;
}

}  // namespace rankscope
