#include "importance/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "parts/program.h"

namespace rankscope {
namespace {

constexpr std::array kKinds{UnitKind::head, UnitKind::mlp, UnitKind::layer, UnitKind::expert};
constexpr std::array kReplacements{Replacement::zero, Replacement::mean, Replacement::resample};

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out{""};
  for (const char c : text)
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

int64_t count_of(const BlockSpec& block, UnitKind kind) {
  if (kind == UnitKind::layer) return 1;
  if (kind == UnitKind::head)
    return block.attention_branch() != nullptr ? block.attention_branch()->attention()->heads : 0;
  const BranchSpec* b = block.mlp_branch();
  if (b == nullptr) return 0;
  if (kind == UnitKind::mlp) return b->skip || block.parallel ? 1 : 0;
  return b->part.name == "experts" ? static_cast<int64_t>(option_of(b->part, "experts")) : 0;
}

}  // namespace

std::string_view to_string(UnitKind kind) {
  switch (kind) {
    case UnitKind::head:
      return "head";
    case UnitKind::mlp:
      return "mlp";
    case UnitKind::layer:
      return "layer";
    case UnitKind::expert:
      return "expert";
  }
  return "";
}

std::string_view to_string(Replacement replacement) {
  switch (replacement) {
    case Replacement::zero:
      return "zero";
    case Replacement::mean:
      return "mean";
    case Replacement::resample:
      return "resample";
  }
  return "";
}

std::string Unit::label() const {
  switch (kind) {
    case UnitKind::head:
      return fmt::format("L{}H{}", layer, index);
    case UnitKind::expert:
      return fmt::format("L{}E{}", layer, index);
    case UnitKind::mlp:
      return fmt::format("MLP {}", layer);
    case UnitKind::layer:
      return fmt::format("layer {}", layer);
  }
  return "";
}

std::vector<Unit> units_of(const ModelSpec& spec, UnitKind kind) {
  const bool numbered = kind == UnitKind::head || kind == UnitKind::expert;
  std::vector<Unit> out;
  for (int64_t l = 0; l < spec.depth(); ++l)
    for (int64_t i = 0; i < count_of(spec.blocks[static_cast<size_t>(l)], kind); ++i)
      out.push_back({kind, l, numbered ? i : -1});
  return out;
}

AblationKinds parse_kinds(const std::string& text) {
  AblationKinds out;
  std::vector<std::string> known{"all", "estimates"};
  for (const UnitKind kind : kKinds) known.push_back(fmt::format("{}s", to_string(kind)));
  for (const std::string& word : words_of(text)) {
    const auto it = std::find(known.begin(), known.end(), word);
    if (it == known.end())
      throw usage_error(fmt::format("there is no kind of part \"{}\"", printable(word)))
          .in("--ablate " + printable(text))
          .hint(fmt::format("{}; the model's folder stands before --ablate", fmt::join(known, ", ")));
    if (word == "estimates") {
      out.estimates = true;
      continue;
    }
    out.all = out.all || word == "all";
    for (const UnitKind kind : kKinds)
      if ((word == "all" || word == fmt::format("{}s", to_string(kind))) &&
          std::find(out.exact.begin(), out.exact.end(), kind) == out.exact.end())
        out.exact.push_back(kind);
  }
  std::sort(out.exact.begin(), out.exact.end());
  if (out.heads()) out.estimates = true;
  return out;
}

std::vector<Replacement> parse_replacements(const std::string& text) {
  std::vector<std::string> known;
  for (const Replacement r : kReplacements) known.emplace_back(to_string(r));
  std::vector<Replacement> out;
  for (const std::string& word : words_of(text)) {
    const auto it = std::find(known.begin(), known.end(), word);
    if (it == known.end())
      throw unknown_name("replacement", word, known).in("--ablate-by " + printable(text));
    const Replacement r = kReplacements[static_cast<size_t>(it - known.begin())];
    if (std::find(out.begin(), out.end(), r) == out.end()) out.push_back(r);
  }
  return out;
}

}  // namespace rankscope
