// What a report is made of: a result table, sentences about it, and where it came from.
//
// report/ stands on base/ alone, so it does not know who measured. Anything with the members of scan's
// ScanResult becomes a Results by itself: `write_results(folder, scan_result)`.
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/array.h"
#include "base/json.h"
#include "base/table.h"

namespace rankscope {

/// One sentence of a verdict with the numbers behind it.
struct Sentence {
  std::string topic, text;
  bool known = true;  // false: the evidence does not decide
  int layer = -1, head = -1;
  double value = kNone, baseline = kNone, threshold = kNone;
  bool found = false;  // it says that something is there: a sink, a collapse, a part that holds the rank up
  bool asked = false;  // about a variant that the user asked for: told in full, also where nothing is found
};

/// A view: the table, the manifest and the arrays stay with their owner.
struct Results {
  const ResultTable& table;
  std::vector<Sentence> verdict;
  std::vector<std::string> notes;
  const Json& manifest;
  std::span<const NamedArray> arrays = {};  // what the report draws head by head
  std::string name = {};                    // of the folder, where there are several

  Results(const ResultTable& table_, std::vector<Sentence> verdict_, std::vector<std::string> notes_,
          const Json& manifest_)
      : table(table_), verdict(std::move(verdict_)), notes(std::move(notes_)), manifest(manifest_) {}

  template <class Scan>
  requires requires(const Scan& s) {
    s.verdict.front().sentence;
    s.table.rows;
    s.manifest;
  }
  Results(const Scan& scan)  // NOLINT(google-explicit-constructor): a scan is a result
      : table(scan.table), notes(scan.notes), manifest(scan.manifest) {
    if constexpr (requires { scan.arrays; }) arrays = scan.arrays;
    for (const auto& f : scan.verdict) {
      verdict.push_back({f.topic, f.sentence, f.known, f.layer, f.head, f.value, f.baseline, f.threshold});
      if constexpr (requires { f.asked; }) verdict.back().asked = f.asked;
      if constexpr (requires { f.claims; })
        for (const auto& claim : f.claims)
          verdict.back().found =
              verdict.back().found || claim.answer == std::remove_cvref_t<decltype(claim.answer)>::yes;
    }
  }
};

}  // namespace rankscope
