// The data of a page, in the shape that web/src/data.ts describes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/version.h"
#include "report/json.h"
#include "report/page.h"
#include "report/page_sample.h"

namespace rankscope {
namespace {

std::string index(int32_t i) { return i < 0 ? "null" : fmt::format("{}", i); }

/// Names that repeat, by number.
class Strings {
 public:
  size_t number(const Name& name) {
    const auto [entry, fresh] = numbers_.emplace(name.str(), names_.size());
    if (fresh) names_.push_back(json_string(name.str()));
    return entry->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<std::string> names_;
};

bool continues(const Row& first, const Row& r, size_t count) {
  return r.head >= 0 && first.head >= 0 && r.head == first.head + static_cast<int32_t>(count) &&
         r.variant == first.variant && r.site == first.site && r.layer == first.layer &&
         r.metric == first.metric && r.tokens == first.tokens && r.depth == first.depth && r.n == first.n &&
         r.stream == first.stream;
}

// Rows that differ in the head alone are one group: most rows are.
void write_groups(const std::vector<Row>& rows, Strings& strings, const TextSink& sink) {
  const char* before = "";
  for (size_t i = 0; i < rows.size();) {
    const Row& first = rows[i];
    std::vector<std::string> values, errors;
    for (; i < rows.size() && (values.empty() || continues(first, rows[i], values.size())); ++i) {
      values.push_back(json_number(rows[i].value));
      errors.push_back(json_number(rows[i].stderr_));
    }
    // Numbered in reading order, whatever order a compiler takes arguments in.
    const size_t variant = strings.number(first.variant), site = strings.number(first.site),
                 metric = strings.number(first.metric), tokens = strings.number(first.tokens);
    const std::string stream = first.stream == "" ? "" : fmt::format(",{}", strings.number(first.stream));
    sink(fmt::format("{}[{},{},{},{},{},{},{},{},[{}],[{}]{}]", before, variant, site, index(first.layer),
                     metric, tokens, index(first.depth), index(first.head), first.n, fmt::join(values, ","),
                     fmt::join(errors, ","), stream));
    before = ",\n";
  }
}

void write_scan(const Results& results, const TextSink& sink) {
  const Json& manifest = results.manifest;
  sink(fmt::format("{{\"name\":{},\n\"manifest\":{},\n\"verdict\":{},\n\"notes\":{},\n\"groups\":[",
                   json_string(results.name), json_text(manifest), verdict_text(results.verdict),
                   json_text(results.notes)));
  Strings strings;
  write_groups(results.table.rows, strings, sink);
  sink(fmt::format("],\n\"strings\":[{}],\n\"shown\":", fmt::join(strings.names(), ",")));
  const Json::json_pointer place("/input/shown");
  write_page_sample(results.arrays, manifest.is_object() && manifest.contains(place) ? manifest.at(place) : Json(),
              sink);
  sink(",\n\"map\":");
  write_token_map(results.arrays, sink);
  sink("}");
}

void write_diff(const ScanDiff& diff, const TextSink& sink) {
  sink(fmt::format("{{\"a\":{},\"b\":{},\"rows\":[", json_string(diff.a), json_string(diff.b)));
  const char* before = "";
  for (const Change& c : diff.changes) {
    sink(fmt::format(
        "{}{{\"variant\":{},\"site\":{},\"layer\":{},\"head\":{},\"metric\":{},\"tokens\":{},\"a\":{},"
        "\"b\":{},\"delta\":{},\"stderr\":{},\"n\":{},\"stream\":{}}}",
        before, json_string(c.variant.str()), json_string(c.site.str()), index(c.layer), index(c.head),
        json_string(c.metric.str()), json_string(c.tokens.str()), json_number(c.a), json_number(c.b),
        json_number(c.delta), json_number(c.stderr_), c.n, json_string(c.stream.str())));
    before = ",\n";
  }
  sink(fmt::format("],\"notes\":{}}}", json_text(diff.notes)));
}

template <class Items, class Write>
void write_list(const Items& items, const TextSink& sink, Write write) {
  const char* before = "";
  for (const auto& item : items) {
    sink(before);
    write(*item, sink);
    before = ",\n";
  }
}

}  // namespace

void write_page_data(const PageContent& content, const TextSink& sink) {
  sink(fmt::format("{{\"schema\":{},\"rankscope\":{},\"live\":{},\n\"scans\":[", kResultSchema,
                   json_string(version()), content.live));
  write_list(content.scans, sink, write_scan);
  sink("],\n\"diff\":");
  content.diff != nullptr ? write_diff(*content.diff, sink) : sink("null");
  sink(",\n\"studies\":[");
  write_list(content.studies, sink, write_study);
  sink("],\n\"folders\":[");
  const char* before = "";
  for (const PageContent::Folder& f : content.folders) {
    sink(fmt::format("{}{{\"path\":{},\"kind\":{},\"model\":{},\"date\":{}}}", before, json_string(f.path),
                     json_string(f.kind), json_string(f.model), json_string(f.date)));
    before = ",\n";
  }
  sink("]}");
}

}  // namespace rankscope
