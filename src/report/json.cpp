#include "report/json.h"

#include <fmt/format.h>

#include <cmath>

namespace rankscope {
namespace {

using Ordered = nlohmann::ordered_json;

template <class AnyJson>
std::string dump(const AnyJson& value, int indent = -1) {
  return value.dump(indent, ' ', false, AnyJson::error_handler_t::replace);
}

Ordered number(double value) { return std::isfinite(value) ? Ordered(value) : Ordered(nullptr); }
Ordered index(int32_t value) { return value < 0 ? Ordered(nullptr) : Ordered(value); }

Ordered object(const Row& r) {
  return {{"variant", r.variant.str()},  {"site", r.site.str()},
          {"layer", index(r.layer)},     {"head", index(r.head)},
          {"metric", r.metric.str()},    {"value", number(r.value)},
          {"stderr", number(r.stderr_)}, {"n", r.n},
          {"depth", index(r.depth)},     {"tokens", r.tokens.str()},
          {"stream", r.stream.str()}};
}

Ordered object(const Sentence& s) {
  return {{"topic", s.topic},
          {"sentence", s.text},
          {"known", s.known},
          {"layer", index(s.layer)},
          {"head", index(s.head)},
          {"value", number(s.value)},
          {"baseline", number(s.baseline)},
          {"threshold", number(s.threshold)},
          {"found", s.found},
          {"asked", s.asked}};
}

template <class Items>
void write_list(const Items& items, const TextSink& sink) {
  const char* before = "[\n";
  for (const auto& item : items) {
    sink(before + dump(object(item)));
    before = ",\n";
  }
  sink(items.empty() ? "[]" : "\n]");
}

}  // namespace

void write_json(const Results& results, const TextSink& sink) {
  sink("{\"manifest\": " + dump(results.manifest) + ",\n\"notes\": " + dump(Json(results.notes)));
  sink(",\n\"verdict\": ");
  write_list(results.verdict, sink);
  sink(",\n\"metrics\": ");
  write_list(results.table.rows, sink);
  sink("}\n");
}

std::string json_string(std::string_view text) { return dump(Json(std::string(text))); }

std::string json_number(double x) {
  if (std::isnan(x)) return "null";
  if (std::isinf(x)) return x > 0 ? "\"inf\"" : "\"-inf\"";
  return fmt::format("{}", x);
}

std::string json_text(const Json& value) { return dump(value); }

std::string verdict_text(const std::vector<Sentence>& verdict) {
  std::string out;
  write_list(verdict, [&](std::string_view text) { out += text; });
  return out;
}

std::string manifest_text(const Json& manifest) { return dump(manifest, 2) + "\n"; }

}  // namespace rankscope
