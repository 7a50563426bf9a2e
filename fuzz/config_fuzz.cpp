// Any text as a config.json: refused with an Error, or a spec whose every parameter has one source and a size
// that fits, of a depth nobody would run out of memory for.
#include "checkpoint/architecture.h"
#include "json_mutator.h"
#include "parts/parameters.h"

namespace {

void check(const rankscope::Architecture& architecture, const rankscope::ModelSpec& spec) {
  using namespace rankscope;
  if (spec.depth() < 1 || spec.depth() > 4096 || spec.stored_blocks > spec.depth()) std::abort();
  if (describe(spec).empty()) std::abort();
  if (spec.depth() > 16) return;  // the rest is the same for every block, and slow
  const WeightMap sources = architecture.weights(spec);
  const std::vector<Parameter> all = parameters(spec);
  if (sources.size() != all.size()) std::abort();
  for (const Parameter& p : all)
    if (!sources.contains(p.name) || element_count(p) < 1) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  fuzz::reading([&] {
    const Json json = parse_json(fuzz::text_of(data, size), "config.json");
    const JsonObject config(json, "config.json");
    const Architecture& architecture = architecture_for(config);
    check(architecture, architecture.spec(config));
  });
  return 0;
}
