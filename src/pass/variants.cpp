#include "pass/variants.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "spec/edit.h"

namespace rankscope {

std::vector<Variant> make_variants(const ScanRequest& request, const ModelSpec& spec) {
  std::vector<Variant> variants{{"full", spec, 0, 0}};
  const auto add = [&](std::string name, ModelSpec edited) {
    const bool twice = std::any_of(variants.begin(), variants.end(), [&](auto& v) { return v.name == name; });
    if (twice) throw usage_error(fmt::format("the variant {} is asked for twice", name));
    variants.push_back({std::move(name), std::move(edited), 0, 0});
  };
  for (const std::string& parts : request.off) add("-" + parts, without(spec, parts));
  for (const std::string& ranks : request.rank) add("rank:" + ranks, with_rank(spec, ranks));
  return variants;
}

std::vector<bool> parse_layers(const std::string& text, int64_t depth) {
  if (text.empty()) return std::vector<bool>(static_cast<size_t>(depth), true);
  std::vector<bool> chosen(static_cast<size_t>(depth), false);
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto bad = [&] {
    return usage_error(fmt::format("\"{}\" does not list layers", printable(text))).hint("--layers 0-5,11");
  };
  const auto number = [&] {
    int64_t value = -1;
    const auto [rest, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || value < 0) throw bad();
    at = rest;
    if (value >= depth)
      throw usage_error(fmt::format("there is no layer {}: the model has {}, counted from 0", value, depth))
          .in("--layers");
    return value;
  };
  for (;;) {
    const int64_t first = number();
    int64_t last = first;
    if (at != end && *at == '-') {
      ++at;
      last = number();
    }
    if (last < first) throw bad();
    for (int64_t l = first; l <= last; ++l) chosen[static_cast<size_t>(l)] = true;
    if (at == end) return chosen;
    if (*at++ != ',') throw bad();
  }
}

std::vector<const Lens*> choose_lenses(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const Lens* lens : lenses()) known.emplace_back(lens->name);
  std::vector<const Lens*> out;
  if (names.empty())
    std::copy_if(lenses().begin(), lenses().end(), std::back_inserter(out),
                 [](auto* l) { return !l->on_request; });
  for (const std::string& name : names) {
    const auto it = std::find(known.begin(), known.end(), name);
    if (it == known.end()) throw unknown_name("lens", name, known, "rankscope lenses");
    out.push_back(lenses()[static_cast<size_t>(it - known.begin())]);
  }
  return out;
}

}  // namespace rankscope
