#include "bench/bench.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "bench/attention_case.h"
#include "bench/growth.h"
#include "bench/machine.h"
#include "bench/training_case.h"
#include "bench/variants_case.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

struct Case {
  std::string name;
  std::function<BenchRow(Machine&)> measure;
  std::string form = {};  // of attention that is not softmax
};

// The cells of the study that the goals name, and attention for every width of a head.
std::vector<Case> all_cases(const Machine& machine) {
  std::vector<Case> cases;
  for (StepShape shape : study_shapes(machine)) {
    if (machine.quick) shape.batch = 32;
    cases.push_back({name_of(shape), [shape](Machine& m) { return measure_step(m, shape); }});
  }
  for (const bool backward : {false, true})
    for (const int64_t width : {1, 2, 4, 8, 16, 32, 64, 128}) {
      const AttentionShape shape{width, backward};
      cases.push_back({name_of(shape), [shape](Machine& m) { return measure_attention(m, shape); }});
    }
  return cases;
}

bool wanted(const std::string& name, const std::vector<std::string>& parts) {
  return parts.empty() || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
           return name.find(part) != std::string::npos;
         });
}

// What was asked for by part of a name; a part that names nothing is a mistake.
template <class Item, class NameOf>
std::vector<Item> chosen(const std::vector<Item>& all, const std::vector<std::string>& parts, NameOf name) {
  std::vector<std::string> names;
  for (const Item& item : all) names.push_back(name(item));
  for (const std::string& part : parts)
    if (std::none_of(names.begin(), names.end(), [&](const auto& n) { return wanted(n, {part}); }))
      throw unknown_name("case", part, names);
  std::vector<Item> out;
  for (const Item& item : all)
    if (wanted(name(item), parts)) out.push_back(item);
  return out;
}

Machine machine_of(const BenchRequest& request) {
  if (request.precision != "fp32" && request.precision != "tf32")
    throw unknown_name("precision", request.precision, {"fp32", "tf32"});
  Machine machine{.device = request.device,
                  .threads = request.threads,
                  .tf32 = request.precision == "tf32",
                  .quick = request.quick,
                  .processor_time = request.processor_time};
  use_machine(machine);
  return machine;
}

}  // namespace

BenchResult run_bench(const BenchRequest& request, const BenchProgress& progress) {
  Machine machine = machine_of(request);
  BenchResult result;
  result.device = request.device;
  result.precision = machine.cuda() ? request.precision : "fp32";
  result.torch = torch_version();
  result.threads = machine.threads;
  result.processor_time = machine.processor_time;
  if (request.growth) {
    const auto axes = chosen(growth_axes(), request.cases, [](const std::string& name) { return name; });
    measure_rates(machine);
    for (const std::string& axis : axes) result.growth.push_back(measure_growth(machine, axis, progress));
  } else {
    std::vector<Case> cases = all_cases(machine);
    if (!request.cases.empty())  // minutes, for those who ask
      for (const std::string& form : variant_form_names()) cases.push_back({"variants " + form, {}, form});
    cases = chosen(cases, request.cases, [](const Case& c) { return c.name; });
    for (const Case& c : cases) {
      if (!c.form.empty()) {
        for (const bool backward : {false, true})
          result.variants.push_back(measure_variant(machine, c.form, backward, progress));
        continue;
      }
      progress(static_cast<int64_t>(result.rows.size()), static_cast<int64_t>(cases.size()), c.name);
      result.rows.push_back(c.measure(machine));
    }
    for (BenchRow& row : result.rows) {  // at the best rates that this run has seen
      if (!row.fault.empty()) continue;
      const Limit limit = limit_of(machine, row.flops, row.bytes);
      row.limit = 1e3 * limit.seconds;
      row.by_bytes = limit.by_bytes;
    }
    for (VariantCurve& curve : result.variants) set_limits(machine, curve);
  }
  result.matrix_rate = machine.matrix_rate;
  result.copy_rate = machine.copy_rate;
  return result;
}

}  // namespace rankscope
