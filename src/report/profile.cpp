#include "report/profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace rankscope {
namespace {

constexpr int kEmbed = -1, kFinal = 1 << 30;  // places before the first and after the last block

// A number that several rows may answer; the one of the content tokens is preferred.
struct Choice {
  double value = kNone;
  bool content = false;
  void offer(const Row& r) {
    const bool is_content = r.tokens.str() == "content";
    if (std::isnan(r.value) || (content && !is_content)) return;
    value = r.value;
    content = is_content;
  }
};

struct Mean {
  double sum = 0;
  int count = 0;
  void add(double value) {
    if (!std::isnan(value)) sum += value, ++count;
  }
  double value() const { return count == 0 ? kNone : sum / count; }
};

struct Collected {
  Choice trimmed, residual, rank, cosine, massive;
  Mean entropy, sinks, attention_rank, ceiling;
};

bool ends_with(const Row& r, std::string_view end) { return std::string_view(r.site.str()).ends_with(end); }

// What attention reads behind a norm: its own tokens, or those that ask another stream.
bool is_normed_input(const Row& r) {
  return ends_with(r, ".ln1.hook_normalized") || ends_with(r, ".ln_cross.hook_normalized");
}

// Where a row of a token site belongs in the table, or nothing: each layer is shown at one site only.
bool token_place(const Row& r, bool pre_norm, int& place) {
  if (pre_norm) {
    place = ends_with(r, "ln_final.hook_normalized") ? kFinal : r.layer;
    return place == kFinal || is_normed_input(r);
  }
  place = r.depth == 0 ? kEmbed : r.layer;
  return r.depth == 0 || ends_with(r, ".hook_resid_post");
}

std::string label(int place) {
  return place == kEmbed ? "embed" : place == kFinal ? "final" : std::to_string(place);
}

struct Building {
  VariantProfile profile;
  double sink_margin;
  std::map<int, Collected> places;
};

void take(Building& b, const Row& r) {
  const auto is = [&](std::string_view name) { return r.metric == name; };
  if (!is("expert_rank") && !is("expert_rank_rel"))  // these count an expert's tokens
    b.profile.samples = std::max(b.profile.samples, r.n);
  if (is("output_kl") || is("output_error")) {
    b.profile.output_kl = r.value;
    b.profile.in_nats = r.site == "unembed.hook_out";  // older tables have output_kl for both
  } else if (is("attention_entropy") && r.head >= 0) {
    b.places[r.layer].entropy.add(r.value);
  } else if (is("numerical_rank") && r.head >= 0) {
    b.places[r.layer].attention_rank.add(r.value);
  } else if (is("rank_ceiling") && r.head >= 0) {
    b.places[r.layer].ceiling.add(r.value);
  } else if (is("sink_margin") && r.head >= 0) {
    b.places[r.layer].sinks.add(std::isnan(r.value) ? kNone : r.value >= b.sink_margin ? 1.0 : 0.0);
  } else if (is("massive_ratio") && r.head < 0) {
    // Massive activations live in the residual stream, in pre-norm models too.
    if (r.depth == 0 && !b.profile.pre_norm) b.places[kEmbed].massive.offer(r);
    if (ends_with(r, ".hook_resid_post")) b.places[r.layer].massive.offer(r);
  } else if (int place = 0; r.head < 0 && token_place(r, b.profile.pre_norm, place)) {
    if (is("residual_fro_rel_trimmed")) b.places[place].trimmed.offer(r);
    if (is("residual_fro_rel")) b.places[place].residual.offer(r);
    if (is("effective_rank_rel")) b.places[place].rank.offer(r);
    if (is("token_cosine")) b.places[place].cosine.offer(r);
  }
}

}  // namespace

std::vector<VariantProfile> profiles(const ResultTable& table, double sink_margin) {
  std::set<std::string_view> pre_norm, with_output{""};  // streams
  for (const Row& r : table.rows) {
    if (is_normed_input(r)) pre_norm.insert(r.stream.str());
    if (r.metric == "output_kl" || r.metric == "output_error") with_output.insert(r.stream.str());
  }
  std::vector<Building> building;
  using Key = std::pair<std::string_view, std::string_view>;  // the names live as long as the process
  std::map<Key, size_t> numbers;
  for (const Row& r : table.rows) {
    const auto [entry, fresh] = numbers.emplace(Key(r.stream.str(), r.variant.str()), building.size());
    if (fresh) {
      building.push_back({{}, sink_margin, {}});
      building.back().profile.variant = r.variant.str();
      building.back().profile.stream = r.stream.str();
      building.back().profile.pre_norm = pre_norm.count(r.stream.str()) > 0;
    }
    take(building[entry->second], r);
  }
  std::vector<VariantProfile> out;
  for (Building& b : building) {
    for (const auto& [place, c] : b.places) {
      for (const Choice* choice : {&c.trimmed, &c.residual, &c.rank, &c.cosine})
        b.profile.content = b.profile.content || choice->content;
      const double residual = std::isnan(c.trimmed.value) ? c.residual.value : c.trimmed.value;
      b.profile.layers.push_back(
          {label(place), residual, c.rank.value, c.cosine.value, c.entropy.value(), c.sinks.value(),
           c.massive.value, c.ceiling.count == 0 ? kNone : c.attention_rank.value(), c.ceiling.value()});
    }
    if (b.profile.variant == "full" && std::isnan(b.profile.output_kl) &&
        with_output.count(b.profile.stream) > 0)
      b.profile.output_kl = 0;  // from itself
    out.push_back(std::move(b.profile));
  }
  return out;
}

}  // namespace rankscope
