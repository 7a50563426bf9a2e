#include "engine/engine.h"

#include <fmt/ranges.h>

#include "attention/variant.h"
#include "base/error.h"
#include "base/version.h"
#include "lenses/lens.h"

namespace rankscope {
namespace {

// torch's own exceptions carry stack traces; a user gets the first line, as an Error.
template <class Call>
auto translated(Call call) {
  const auto too_little = [] {
    return Error("there is not enough memory").hint("a smaller --batch-size, --samples or --max-length");
  };
  try {
    return call();
  } catch (const c10::Error& e) {
    const std::string text = e.what_without_backtrace();
    for (const char* words : {"can't allocate memory", "out of memory"})
      if (text.find(words) != std::string::npos) throw too_little();
    throw Error(fmt::format("torch: {}", text.substr(0, text.find('\n'))));
  } catch (const std::bad_alloc&) {
    throw too_little();
  }
}

std::vector<LensInfo> lens_list() {
  std::vector<LensInfo> out;
  for (const Lens* lens : lenses()) {
    LensInfo info{
        std::string(lens->name), std::string(lens->summary), std::string(lens->cost), lens->on_request, {}};
    for (const MetricInfo& m : lens->metrics)
      info.metrics.push_back({std::string(m.name), std::string(m.formula), std::string(m.meaning),
                              m.mean == Mean::geometric ? "geometric" : "arithmetic"});
    out.push_back(std::move(info));
  }
  return out;
}

std::vector<AttentionInfo> attention_list() {
  std::vector<AttentionInfo> out;
  for (const AttentionVariant* v : attention_variants()) {
    AttentionInfo info{.name = std::string(v->name),
                       .summary = std::string(v->summary),
                       .rank_law = std::string(v->rank_law),
                       .rows_sum_to_one = v->row_stochastic,
                       .shares = v->shares,
                       .may_be_causal = v->may_be_causal,
                       .only_causal = v->only_causal,
                       .options = {}};
    for (const VariantOption& o : v->options)
      info.options.push_back({std::string(o.name), std::string(o.otherwise),
                              o.words.empty() ? fmt::format("{} to {}", o.low, o.high)
                                              : fmt::format("{}", fmt::join(o.words, ", ")),
                              std::string(o.meaning)});
    out.push_back(std::move(info));
  }
  return out;
}

const Engine engine{
    .scan = [](const ScanRequest& r,
               const ProgressCallback& p) { return translated([&] { return scan(r, p); }); },
    .verify = [](const VerifyRequest& r) { return translated([&] { return verify(r); }); },
    .lenses = lens_list,
    .attention = attention_list,
    .sites = list_sites,
    .runners = runners,
    .paths = [](const PathsRequest& r,
                const ProgressCallback& p) { return translated([&] { return measure_paths(r, p); }); },
    .collapse = [](const CollapseRequest& r,
                   const ProgressCallback& p) { return translated([&] { return measure_collapse(r, p); }); },
    .linear_operator =
        [](const OperatorRequest& r, const ProgressCallback& p) {
          return translated([&] { return measure_operator(r, p); });
        },
    .bench = [](const BenchRequest& r,
                const BenchProgress& p) { return translated([&] { return run_bench(r, p); }); },
    .plan =
        [](const PlanRequest& r, const ProgressCallback& p) {
          PlanResult plan = translated([&] { return make_plan(r, p); });
          plan.write = [write = std::move(plan.write)](const std::filesystem::path& folder) {
            translated([&] { write(folder); });
          };
          return plan;
        },
};

}  // namespace
}  // namespace rankscope

extern "C" const rankscope::Engine* rankscope_engine(const char* version) {
  return rankscope::version() == version ? &rankscope::engine : nullptr;
}
