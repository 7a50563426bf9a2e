#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "collapse/collapse.h"
#include "spec/edit.h"

namespace rankscope {
namespace {

enum class Norms { own, held, none };

// What takes the skip around attention out: in parallel blocks it is the MLP's, too.
const char* attention_skip(const ModelSpec& spec) { return has_one_skip(spec) ? "skip" : "attention-skip"; }

std::vector<CollapseVariant> factorial(const ModelSpec& spec, Factors factors) {
  std::vector<CollapseVariant> out;
  for (const bool position : {true, false})
    for (const bool skip : {true, false})
      for (const Norms norms : {Norms::own, Norms::held, Norms::none})
        for (const int mlp : {2, 1, 0}) {
          if ((!position && !factors.positions) || (norms == Norms::held && !factors.frozen_norm)) continue;
          if (mlp == 1 && has_one_skip(spec)) continue;
          std::string parts;
          const auto off = [&](const char* part) { parts += (parts.empty() ? "" : "+") + std::string(part); };
          if (!skip) off(attention_skip(spec));
          if (mlp == 1) off("mlp-skip");
          if (mlp == 0) off("mlp");
          if (norms == Norms::none) off("norm");
          if (!position) off("position");
          ModelSpec edited = parts.empty() ? spec : without(spec, parts);
          if (norms == Norms::held) off("norm-statistics");  // no edit: the pass holds them
          // A part that --off took out before would make a network twice.
          const bool twin = std::ranges::any_of(out, [&](const CollapseVariant& v) {
            return v.spec == edited && v.held_norms == (norms == Norms::held);
          });
          if (twin) continue;
          out.push_back({parts.empty() ? "full" : "-" + parts, std::move(edited), skip, norms != Norms::none,
                         mlp, norms == Norms::held, position});
        }
  return out;
}

// The surgery of Dong, Cordonnier and Loukas: the norm after attention is never taken out.
std::vector<CollapseVariant> of_the_paper(const ModelSpec& spec, bool as_published) {
  const auto without_mlp = [&](ModelSpec s) {
    if (!as_published || spec.architecture != "albert") return without(std::move(s), "mlp");
    // There the two matrices became the identity: y = N2(u + act(u)).
    for (BlockSpec& b : s.blocks) b.mlp_branch()->part.name = "activation";
    return s;
  };
  const ModelSpec no_skip = without(spec, attention_skip(spec));
  return {{"transformer", spec, true, true, 2},
          {"SAN", without_mlp(no_skip), false, true, 0},
          {"SAN+MLP", no_skip, false, true, 2},
          {"SAN+skip", without_mlp(spec), true, true, 0}};
}

}  // namespace

std::vector<CollapseVariant> collapse_variants(const ModelSpec& spec, const std::string& preset,
                                               Factors factors) {
  if (preset == "factorial") return factorial(spec, factors);
  if (factors.frozen_norm || factors.positions)
    throw usage_error(
        fmt::format("{} is a factor of the factorial", factors.frozen_norm ? "--frozen-norm" : "--positions"))
        .in("--preset " + preset);
  if (preset == "paper") return of_the_paper(spec, false);
  if (preset == "published") return of_the_paper(spec, true);
  throw unknown_name("preset", preset, {"factorial", "paper", "published"}, "rankscope collapse --help");
}

}  // namespace rankscope
