#include "base/suggest.h"

#include <algorithm>

namespace rankscope {

size_t edit_distance(std::string_view a, std::string_view b) {
  const size_t n = b.size();
  std::vector<size_t> before(n + 1), above(n + 1), row(n + 1);
  for (size_t j = 0; j <= n; ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= n; ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[n];
}

std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& known, size_t count) {
  name = name.substr(0, 100);  // a name from outside may be enormous
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t i = 0; i < known.size(); ++i) {
    // A name that was not typed to its end is no mistake.
    const bool begun = name.size() > 2 && known[i].starts_with(name);
    order.emplace_back(begun ? 0 : edit_distance(name, known[i]), i);
  }
  std::stable_sort(order.begin(), order.end(), [](auto& x, auto& y) { return x.first < y.first; });
  std::vector<std::string> out;
  for (size_t i = 0; i < std::min(count, order.size()); ++i) out.push_back(known[order[i].second]);
  return out;
}

std::string to_copy(const std::string& name, std::string_view otherwise) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./+@:,=%-").find(c) != std::string_view::npos;
  };
  const bool safe = !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), plain);
  return safe ? name : std::string(otherwise);
}

}  // namespace rankscope
