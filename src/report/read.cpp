#include "report/read.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/files.h"

namespace rankscope {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLargestTable = uint64_t{4} << 30;

// The columns as they are now, or as they were: schema 1 had no stream, and samples no depth.
void require_header(const std::vector<std::string>& cells, const std::string& expected,
                    const CsvReader& reader) {
  const std::string got = fmt::format("{}", fmt::join(cells, ","));
  if (got != expected && got + ",stream" != expected && got + ",depth" != expected &&
      got + ",stream,depth" != expected)
    throw Error(fmt::format("expected the columns {}, but got {}", expected, printable(got)))
        .in(reader.where());
}

Name stream(const std::vector<std::string>& cells, size_t place) {
  return cells.size() > place ? Name(cells[place]) : Name();
}

int32_t index(const std::string& cell, const CsvReader& reader) {
  return static_cast<int32_t>(csv_index(cell, reader));
}

std::vector<Row> read_metrics_csv(const fs::path& file) {
  const std::string text = read_file(file, kLargestTable);
  CsvReader reader(text, file.string());
  std::vector<std::string> c;
  std::vector<Row> rows;
  reader.next(c);
  require_header(c, "variant,site,layer,head,metric,value,stderr,n,depth,tokens,stream", reader);
  while (reader.next(c))
    rows.push_back({c[0], c[1], index(c[2], reader), index(c[3], reader), c[4], csv_number(c[5], reader),
                    csv_number(c[6], reader), csv_index(c[7], reader), index(c[8], reader), c[9],
                    stream(c, 10)});
  return rows;
}

std::vector<SampleRow> read_samples_csv(const fs::path& file) {
  const std::string text = read_file(file, kLargestTable);
  CsvReader reader(text, file.string());
  std::vector<std::string> c;
  std::vector<SampleRow> rows;
  reader.next(c);
  require_header(c, "variant,site,layer,head,metric,tokens,sample,value,stream,depth", reader);
  while (reader.next(c))
    rows.push_back({c[0], c[1], index(c[2], reader), index(c[3], reader), c[4], c[5], csv_index(c[6], reader),
                    csv_number(c[7], reader), stream(c, 8),
                    c.size() > 9 ? index(c[9], reader) : kDepthNotSaid});
  return rows;
}

double number_or_none(const Json& value) { return value.is_number() ? value.get<double>() : kNone; }
int index_or_none(const Json& value) { return value.is_number_integer() ? value.get<int>() : -1; }

std::vector<Sentence> sentences(const Json& manifest, const std::string& place) {
  std::vector<Sentence> out;
  if (!manifest.contains("verdict")) return out;
  if (!manifest["verdict"].is_array()) throw Error("expected a list of sentences").in(place + ", verdict");
  for (const Json& entry : manifest["verdict"]) {
    const JsonObject o(entry, place + ", verdict");
    const auto value = [&](const char* key) { return o.has(key) ? o.at(key) : Json(); };
    out.push_back({o.string("topic"), o.string("sentence"), o.boolean("known", true),
                   index_or_none(value("layer")), index_or_none(value("head")),
                   number_or_none(value("value")), number_or_none(value("baseline")),
                   number_or_none(value("threshold")), o.boolean("found", false), o.boolean("asked", false)});
  }
  return out;
}

}  // namespace

Results SavedResults::view() const {
  Results results(table, verdict, notes, manifest);
  results.arrays = arrays;
  results.name = name;
  return results;
}

std::string folder_name(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  return (whole.has_filename() ? whole.filename() : whole.parent_path().filename()).string();
}

bool is_scan_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "metrics.csv", ignored);
}

void require_known_schema(const JsonObject& about) {
  const int64_t schema = about.integer("schema", 0, INT64_MAX, kResultSchema);
  if (schema > kResultSchema)
    throw Error(fmt::format("the results have schema {}, newer than the {} this program reads", schema,
                            kResultSchema))
        .in(about.place())
        .hint("a newer rankscope");
}

SavedResults read_results(const fs::path& folder, Samples samples) {
  if (!is_scan_folder(folder))
    throw Error("there is no metrics.csv")
        .in(folder.string())
        .hint("rankscope scan MODEL --out FOLDER writes one");
  SavedResults out;
  out.name = folder_name(folder);
  const fs::path manifest = folder / "manifest.json";
  out.manifest = read_json(manifest, 64 << 20);
  const JsonObject object(out.manifest, manifest.string());
  require_known_schema(object);
  out.verdict = sentences(out.manifest, manifest.string());
  if (out.manifest.contains("notes") && out.manifest["notes"].is_array())
    for (const Json& note : out.manifest["notes"])
      if (note.is_string()) out.notes.push_back(note.get<std::string>());
  out.manifest.erase("verdict");
  out.table.rows = read_metrics_csv(folder / "metrics.csv");
  if (samples == Samples::read) out.table.samples = read_samples_csv(folder / "samples.csv");
  return out;
}

}  // namespace rankscope
