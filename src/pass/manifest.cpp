#include "pass/manifest.h"

#include <sys/resource.h>

#include <map>
#include <set>

#include "base/sha256.h"
#include "base/version.h"
#include "model/sites.h"
#include "pass/file_hashes.h"
#include "pass/metrics.h"
#include "spec/head_groups.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

Json hashes(const std::vector<std::filesystem::path>& files) {
  Json out = Json::object();
  for (const auto& file : files) out[file.filename().string()] = "sha256:" + hash_of_file(file);
  return out;
}

std::string hash_of_ids(const std::vector<Sample>& samples) {
  Sha256 hash;
  for (const Sample& s : samples) {
    hash.update(std::as_bytes(std::span(s.ids)));
    hash.update(std::as_bytes(std::span(s.pixels)));
    hash.update("|");
  }
  return "sha256:" + hash.hex();
}

std::set<std::string> metrics_of(const ResultTable& table) {
  std::set<std::string> used;
  for (const Row& r : table.rows) used.insert(r.metric.str());
  return used;
}

Json definition(const MetricInfo& m) {
  return {{"formula", m.formula},
          {"meaning", m.meaning},
          {"mean", m.mean == Mean::geometric ? "geometric" : "arithmetic"}};
}

/// A definition a metric: that of the site its first row was measured at, and under "at" that of any other
/// site where the name stands for something else ("effective_rank" of tokens and of attention).
Json definitions(const ResultTable& table) {
  Json out = Json::object();
  std::map<std::pair<std::string, std::string>, const MetricInfo*>
      seen;  // of (metric, site within its block)
  std::map<std::string, const MetricInfo*> first;
  for (const Row& r : table.rows) {
    const std::string &name = r.metric.str(), site(within_block(r.site.str()));
    const auto [known, fresh] = seen.emplace(std::pair(name, site), nullptr);
    if (!fresh) continue;
    known->second = metric_info(name, r.site.str());
    if (known->second == nullptr) continue;
    const MetricInfo* told = first.emplace(name, known->second).first->second;
    if (told == known->second)
      out[name] = out.contains(name) ? out[name] : definition(*told);
    else
      out[name]["at"][site] = definition(*known->second);
  }
  return out;
}

Json versions(const std::set<std::string>& metrics) {
  Json out = Json::object();
  for (const std::string& name : metrics)
    if (const MetricInfo* m = metric_info(name)) out[name] = m->version;
  return out;
}

Json thresholds_of(const Thresholds& set) {
  Json out = Json::object();
  for (const ThresholdInfo& t : threshold_infos()) out[std::string(t.name)] = set[t.name];
  return out;
}

// By layer the kind of each head, null where they are of one kind; null where no layer mixes them.
Json head_kinds(const ModelSpec& spec) {
  Json layers = Json::array();
  bool mixed = false;
  for (const BlockSpec& block : spec.blocks) {
    Json kinds;
    const BranchSpec* b = block.attention_branch();
    if (b != nullptr && has_head_groups(*b->attention())) {
      const HeadGroups groups = head_groups(*b->attention());
      for (int64_t h = 0; h < b->attention()->heads; ++h) kinds.push_back(groups.of(h).kind);
      mixed = true;
    }
    layers.push_back(kinds);
  }
  return mixed ? layers : Json();
}

// What the model calls itself: of a fine-tuned one this is often what it came from, so a telling folder
// counts more.
std::string name_in(const Checkpoint* checkpoint) {
  if (checkpoint == nullptr || !checkpoint->config().is_object()) return "";
  const auto name = checkpoint->config().find("_name_or_path");
  return name != checkpoint->config().end() && name->is_string() ? name->get<std::string>() : "";
}

}  // namespace

std::vector<std::filesystem::path> weight_files(const Checkpoint& checkpoint) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : checkpoint.store().files()) files.push_back(file->path());
  return files;
}

Json make_manifest(const ScanRequest& request, const Checkpoint* checkpoint, const ScanInput& input,
                   const ScanResult& result, const std::vector<std::string>& variants, double seconds) {
  const std::vector<std::filesystem::path> weights =
      checkpoint != nullptr ? weight_files(*checkpoint) : std::vector<std::filesystem::path>();
  int64_t tokens = 0;
  for (const std::vector<Sample>* samples : {&input.samples, &input.encoder})
    for (const Sample& s : *samples) tokens += static_cast<int64_t>(s.ids.size());
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  const std::set<std::string> metrics = metrics_of(result.table);
  const bool wide = request.dtype == "float64";
  Json shown{{"sample", kShownSample},
             {"tokens", request.show ? input.sample_tokens : std::vector<std::string>()}};
  if (!input.encoder.empty() && request.show) shown["encoder"] = input.encoder_tokens;
  std::vector<Sample> all = input.encoder;  // those of the encoder first
  all.insert(all.end(), input.samples.begin(), input.samples.end());
  Json manifest{
      {"schema", kResultSchema},
      {"rankscope", std::string(version())},
      {"torch", torch_version()},
      {"model", request.model.string()},
      {"model_name", name_in(checkpoint)},
      {"architecture", result.spec.architecture},
      {"spec", describe(result.spec)},
      {"weights", hashes(weights)},
      {"tokenizer", hashes(input.tokenizer)},
      {"input",
       {{"what", input.description},
        {"samples", input.samples.size()},
        {"tokens", tokens},
        {"ids", hash_of_ids(all)},
        {"max_length", request.max_length},
        {"shown", shown}}},
      {"variants", variants},
      {"seed", request.seed},
      {"device", request.device},
      {"dtype", request.dtype},
      {"threads", thread_count()},
      {"numerical_rank_tolerance",
       wide ? "max(rows, columns) * 2^-52 * sigma_1" : "max(rows, columns) * 2^-23 * sigma_1"},
      {"thresholds", thresholds_of(request.thresholds)},
      {"metrics", definitions(result.table)},
      {"metric_versions", versions(metrics)},
      {"notes", result.notes},
      {"wall_seconds", seconds},
      {"peak_memory_bytes", static_cast<int64_t>(usage.ru_maxrss) * 1024},
  };
  if (Json kinds = head_kinds(result.spec); !kinds.is_null()) manifest["head_kinds"] = std::move(kinds);
  return manifest;
}

}  // namespace rankscope
