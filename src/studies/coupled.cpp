#include "studies/coupled.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace rankscope {
namespace {

constexpr size_t kMostCombinations = 100000;

using EntryRow = std::vector<Scalar>;

bool same_value(const Scalar& a, const Scalar& b) { return to_text(a) == to_text(b); }

// A key that was given: where it stands in the entries, and its values.
struct Asked {
  std::string name;
  size_t column;
  std::vector<Scalar> values;
};

// In the order in which the study writes them, not in that of the command line.
std::vector<Asked> in_order(const Axis& coupled, const std::vector<Axis>& given) {
  std::vector<Asked> out;
  for (size_t column = 0; column < coupled.names.size(); ++column)
    for (const Axis& axis : given)
      if (axis.names[0] == coupled.names[column]) {
        out.push_back({axis.names[0], column, {}});
        for (const EntryRow& value : axis.points) out.back().values.push_back(value[0]);
      }
  return out;
}

// Every way to take one value of each key, the last key turning fastest.
std::vector<EntryRow> combinations(const std::vector<Asked>& asked, const std::string& study) {
  std::vector<EntryRow> out{{}};
  for (const Asked& key : asked) {
    if (out.size() * key.values.size() > kMostCombinations)
      throw usage_error(fmt::format("there are more than {} ways to combine these values", kMostCombinations))
          .in("study " + study)
          .hint("fewer values");
    std::vector<EntryRow> longer;
    for (const EntryRow& row : out)
      for (const Scalar& value : key.values) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    out = std::move(longer);
  }
  return out;
}

// The entries nearest to a combination, and which of its values they have themselves.
struct Nearest {
  std::vector<EntryRow> entries;
  std::vector<bool> has;  // for each key

  bool all() const { return std::find(has.begin(), has.end(), false) == has.end(); }
};

Nearest nearest_entries(const Axis& coupled, const std::vector<Asked>& asked, const EntryRow& values) {
  Nearest out{coupled.points, {}};
  for (size_t i = 0; i < asked.size(); ++i) {
    std::vector<EntryRow> with;
    for (const EntryRow& entry : out.entries)
      if (same_value(entry[asked[i].column], values[i])) with.push_back(entry);
    out.has.push_back(!with.empty());
    if (!with.empty()) out.entries = std::move(with);
  }
  return out;
}

// Given values by key, as "kind=sigmoid causal=true".
using Said = std::map<size_t, std::vector<std::string>>;

void say(Said& said, size_t key, const Scalar& value) {
  std::vector<std::string>& words = said[key];
  if (std::find(words.begin(), words.end(), to_text(value)) == words.end()) words.push_back(to_text(value));
}

std::string text_of(const Said& said, const std::vector<Asked>& asked) {
  std::vector<std::string> words;
  for (const auto& [key, values] : said)
    words.push_back(fmt::format("{}={}", asked[key].name, fmt::join(values, ",")));
  return fmt::format("{}", fmt::join(words, " "));
}

// Combinations that are no entry of the study, by which of their keys the entries have: a note for each kind.
class Strangers {
 public:
  void add(const Nearest& nearest, const EntryRow& values) {
    for (size_t i = 0; i < values.size(); ++i)
      say(nearest.has[i] ? of_[nearest.has].first : of_[nearest.has].second, i, values[i]);
  }
  std::vector<std::string> notes(const std::vector<Asked>& asked, const std::string& study) const {
    std::vector<std::string> out;
    for (const auto& [has, said] : of_) {
      const std::string kept = text_of(said.first, asked), new_ones = text_of(said.second, asked);
      out.push_back(kept.empty()
                        ? fmt::format("no entry of {} has {}: its entries run with it and keep the rest",
                                      study, new_ones)
                        : fmt::format("no entry of {} has {} with {}: the other settings of {} are kept",
                                      study, kept, new_ones, kept));
    }
    return out;
  }

 private:
  std::map<std::vector<bool>, std::pair<Said, Said>> of_;  // what entries have, and what they do not
};

class Collector {
 public:
  explicit Collector(const Axis& coupled) { out_.axis.names = coupled.names; }

  void add(const std::vector<Asked>& asked, const Nearest& nearest, const EntryRow& values) {
    for (const EntryRow& entry : nearest.entries) {
      EntryRow point = entry;
      std::string text;
      for (size_t i = 0; i < asked.size(); ++i) point[asked[i].column] = values[i];
      for (const Scalar& value : point) text += to_text(value) + '\n';
      if (!seen_.insert(text).second) continue;  // entries may differ in nothing but what was given
      out_.axis.points.push_back(std::move(point));
      out_.own.push_back(entry);
    }
  }
  Entries take() { return std::move(out_); }

 private:
  Entries out_;
  std::set<std::string> seen_;
};

}  // namespace

Entries asked_for(const Axis& coupled, const std::vector<Axis>& given, const std::string& study) {
  const std::vector<Asked> asked = in_order(coupled, given);
  const std::vector<EntryRow> all = combinations(asked, study);
  std::vector<std::set<std::string>> found(
      asked.size());  // values that entries have with given ones of all keys
  for (const EntryRow& values : all) {
    const bool entry = nearest_entries(coupled, asked, values).all();
    for (size_t i = 0; i < values.size() && entry; ++i) found[i].insert(to_text(values[i]));
  }
  Collector out(coupled);
  Strangers strangers;
  for (const EntryRow& values : all) {
    const Nearest nearest = nearest_entries(coupled, asked, values);
    bool lost = false;  // one of its values, if only entries as they are ran
    for (size_t i = 0; i < asked.size(); ++i) lost = lost || !found[i].contains(to_text(values[i]));
    if (!nearest.all() && !lost) continue;
    out.add(asked, nearest, values);
    if (!nearest.all()) strangers.add(nearest, values);
  }
  Entries entries = out.take();
  entries.notes = strangers.notes(asked, study);
  return entries;
}

}  // namespace rankscope
