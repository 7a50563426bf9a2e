// The result table: the one thing that leaves a lens or a study. Tidy rows, one number each.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

/// A string that repeats in many rows (a site, a metric), kept once for the life of the process.
class Name {
 public:
  Name() : Name(std::string_view{}) {}
  Name(std::string_view text);
  Name(const char* text) : Name(std::string_view(text)) {}
  Name(const std::string& text) : Name(std::string_view(text)) {}
  const std::string& str() const { return *text_; }
  bool operator==(const Name& other) const { return text_ == other.text_; }
  bool operator==(std::string_view other) const { return *text_ == other; }
  bool operator==(const char* other) const { return *text_ == other; }
  bool operator<(const Name& other) const { return *text_ < *other.text_; }

 private:
  const std::string* text_;
};

/// Of the files that hold results. 2: tables have a stream, the manifest a version for each metric.
constexpr int kResultSchema = 2;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// metrics.csv: variant,site,layer,head,metric,value,stderr,n,depth,tokens,stream
struct Row {
  Name variant;          // "full", "-skip", "-skip+mlp", ...
  Name site;             // hook name: "blocks.3.attn.hook_pattern"
  int32_t layer = -1;    // from 0; -1 is written as an empty cell
  int32_t head = -1;     // from 0; -1 is written as an empty cell
  Name metric;           // says its definition
  double value = kNone;  // over samples; NaN is written as an empty cell
  double stderr_ = kNone;
  int64_t n = 0;        // samples behind it
  int32_t depth = -1;   // blocks passed: 0 is the embeddings
  Name tokens = "all";  // "all" or "content"
  Name stream = {};     // "encoder" of an encoder and a decoder; empty where a network has one stream
};

/// samples.csv: the same without aggregation, so that two scans can be compared pair by pair.
struct SampleRow {
  Name variant, site;
  int32_t layer = -1, head = -1;
  Name metric;
  Name tokens = "all";
  int64_t sample = 0;
  double value = kNone;
  Name stream = {};
  int32_t depth = -1;  // as in Row
};
constexpr int32_t kDepthNotSaid = -2;  // in samples.csv from before it had the column

struct ResultTable {
  std::vector<Row> rows;
  std::vector<SampleRow> samples;

  /// The one row that matches, or nullptr. An empty site matches any.
  const Row* find(std::string_view variant, std::string_view metric, int layer, int head = -1,
                  std::string_view tokens = "all", std::string_view site = {}) const;
};

}  // namespace rankscope
