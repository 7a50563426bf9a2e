#include "tasks/token_task.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "tasks/unasked.h"

namespace rankscope {
namespace {

size_t most(const std::map<int64_t, size_t>& counts) {
  size_t best = 0;
  for (const auto& [label, count] : counts) best = std::max(best, count);
  return best;
}

bool asked(int64_t label) { return label != kNoToken && label != kUnasked; }

size_t labelled(const TokenSet& set) {
  return static_cast<size_t>(std::count_if(set.labels.begin(), set.labels.end(), asked));
}

}  // namespace

int64_t TokenSet::length(int64_t s) const {
  int64_t n = tokens;
  while (!labels.empty() && n > 0 && labels[static_cast<size_t>(s * tokens + n - 1)] == kNoToken) --n;
  return n;
}

const TokenTask& token_task_named(std::string_view name) {
  std::vector<std::string> known;
  for (const TokenTask* task : token_tasks()) {
    if (task->name == name) return *task;
    known.emplace_back(task->name);
  }
  throw unknown_name("task", name, known);
}

double majority_share(const TokenSet& set) {
  std::map<int64_t, size_t> counts;
  for (const int64_t label : set.labels)
    if (asked(label)) ++counts[label];
  return static_cast<double>(most(counts)) / static_cast<double>(labelled(set));
}

double ceiling_without_positions(const TokenSet& set) {
  size_t right = 0;
  for (int64_t s = 0; s < set.sequences(); ++s) {
    std::map<std::vector<double>, std::map<int64_t, size_t>> by_token;
    for (int64_t i = 0; i < set.length(s); ++i) {
      const auto at = static_cast<size_t>(s * set.tokens + i);
      const std::vector<double> token = set.ids.empty()
                                            ? std::vector<double>{set.points[2 * at], set.points[2 * at + 1]}
                                            : std::vector<double>{static_cast<double>(set.ids[at])};
      if (asked(set.labels[at])) ++by_token[token][set.labels[at]];
    }
    for (const auto& [token, counts] : by_token) right += most(counts);
  }
  return static_cast<double>(right) / static_cast<double>(labelled(set));
}

}  // namespace rankscope
