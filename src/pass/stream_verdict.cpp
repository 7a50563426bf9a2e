#include "pass/stream_verdict.h"

#include <fmt/format.h>

#include <set>

#include "model/sites.h"
#include "model/streams.h"
#include "pass/pass.h"

namespace rankscope {
namespace {

ResultTable rows_of(const ResultTable& table, std::string_view stream) {
  ResultTable out;
  for (const Row& r : table.rows)
    if (r.stream == stream) out.rows.push_back(r);
  for (const SampleRow& r : table.samples)
    if (r.stream == stream) out.samples.push_back(r);
  return out;
}

std::set<std::string_view> variants_of(const ResultTable& table) {
  std::set<std::string_view> out;
  for (const Row& r : table.rows) out.insert(r.variant.str());
  return out;
}

// The decoder as if the attention to the encoder were all its blocks had.
ModelSpec cross_alone(ModelSpec spec) {
  for (BlockSpec& block : spec.blocks) block = attention_alone(block, "cross");
  return spec;
}

// --ablate follows one stream; a head of several can be taken out by name.
std::string without_ablate(std::string sentence, const std::string& stream) {
  constexpr std::string_view kAdvice = "run with --ablate";
  if (const size_t at = sentence.find(kAdvice); at != std::string::npos)
    sentence.replace(at, kAdvice.size(), fmt::format("take it out with --off head:{}.L0H0", stream));
  return sentence;
}

bool is_about_attention(const Finding& f) { return f.topic == "sink" || f.topic == "head"; }

}  // namespace

std::vector<Finding> judge_streams(const ResultTable& table, const ModelSpec& spec,
                                   const Thresholds& thresholds, const Measured& measured) {
  if (spec.sources.empty()) return judge(table, spec, thresholds, measured);
  std::vector<Finding> out;
  const auto add = [&](const std::string& name, const ModelSpec& of, bool attention_only) {
    const ResultTable rows = rows_of(table, name);
    Measured here = measured;
    here.not_finite.clear();
    if (const auto own = measured.shortest_of.find(name); own != measured.shortest_of.end())
      here.shortest = own->second;
    for (const std::string_view variant : variants_of(rows))
      if (const auto lost = measured.not_finite.find(in_stream(name, std::string(variant)));
          lost != measured.not_finite.end())
        here.not_finite.emplace(variant, lost->second);
    for (Finding& f : judge(rows, of, thresholds, here)) {
      if (attention_only && !(is_about_attention(f) && f.measured)) continue;
      f.sentence = fmt::format("{}: {}", name, without_ablate(f.sentence, name));
      for (Claim& claim : f.claims) claim.subject = fmt::format("{}: {}", name, claim.subject);
      out.push_back(std::move(f));
    }
  };
  for (const StreamSpec& s : spec.sources) add(s.name, stream_alone(s, spec), false);
  add(kLastStream, spec, false);
  add(kCrossStream, cross_alone(spec), true);
  return out;
}

}  // namespace rankscope
