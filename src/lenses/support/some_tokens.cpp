#include "lenses/support/some_tokens.h"
#include "lenses/support/on_device.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <list>
#include <map>

#include "base/some_places.h"

namespace rankscope {
namespace {

struct Key {
  std::vector<int64_t> offsets, samples;
  std::vector<uint8_t> content;
  Take take;
  int64_t most, together;
  c10::Device device;
  bool operator==(const Key&) const = default;
};

std::vector<int64_t> tokens_of(const Packing& p, int64_t s, Take take, int64_t most) {
  std::vector<int64_t> all;
  for (int64_t i = p.offsets[static_cast<size_t>(s)]; i < p.offsets[static_cast<size_t>(s) + 1]; ++i)
    if (take == Take::all || p.content[static_cast<size_t>(i)] != 0) all.push_back(i);
  std::vector<int64_t> some = some_places(std::ssize(all), most);
  for (int64_t& place : some) place = all[static_cast<size_t>(place)];
  return some;
}

std::vector<SomeTokens> make(const Packing& p, const Key& key) {
  struct Group {
    std::vector<int64_t> samples, names, rows;
  };
  std::map<size_t, std::vector<Group>> by_length;
  for (int64_t s = 0; s < p.count(); ++s) {
    const std::vector<int64_t> rows = tokens_of(p, s, key.take, key.most);
    if (rows.size() < 2) continue;
    std::vector<Group>& groups = by_length[rows.size()];
    if (groups.empty() || static_cast<int64_t>(groups.back().samples.size()) == key.together)
      groups.emplace_back();
    Group& group = groups.back();
    group.samples.push_back(s);
    group.names.push_back(p.samples[static_cast<size_t>(s)]);
    group.rows.insert(group.rows.end(), rows.begin(), rows.end());
  }
  const auto there = [&](const std::vector<int64_t>& v) {
    return sent(at::tensor(v, at::kLong), key.device);
  };
  std::vector<SomeTokens> out;
  for (auto& [length, groups] : by_length)
    for (Group& g : groups) out.push_back({g.names, there(g.samples), there(g.names), there(g.rows)});
  return out;
}

}  // namespace

at::Tensor SomeTokens::of(const at::Tensor& x) const {
  std::vector<int64_t> shape{count(), rows.size(0) / count()};
  shape.insert(shape.end(), x.sizes().begin() + 1, x.sizes().end());
  return x.index_select(0, rows).view(shape);
}

at::Tensor SomeTokens::by_group(int64_t groups) const {
  const at::Tensor each = at::arange(groups, numbers.options());
  return (each.unsqueeze(1) == numbers.remainder(groups).unsqueeze(0)).to(at::kDouble);
}

const std::vector<SomeTokens>& some_tokens(const Packing& p, Take take, int64_t most, const at::Tensor& x,
                                           int64_t made_of_one) {
  const int64_t room = x.is_cpu() ? int64_t{1} << 17 : int64_t{1} << 27;
  const int64_t together = std::max<int64_t>(1, room / std::max<int64_t>(1, made_of_one));
  Key key{{p.offsets.begin(), p.offsets.end()},
          {p.samples.begin(), p.samples.end()},
          {p.content.begin(), p.content.end()},
          take,
          most,
          together,
          x.device()};
  // Made once for a batch: every block asks again.
  constexpr size_t kKept = 32;
  thread_local std::list<std::pair<Key, std::vector<SomeTokens>>> known;
  const auto it = std::ranges::find(known, key, [](const auto& entry) -> const Key& { return entry.first; });
  if (it != known.end()) {
    known.splice(known.begin(), known, it);
    return known.front().second;
  }
  std::vector<SomeTokens> made = make(p, key);
  known.emplace_front(std::move(key), std::move(made));
  if (known.size() > kKept) known.pop_back();
  return known.front().second;
}

}  // namespace rankscope
