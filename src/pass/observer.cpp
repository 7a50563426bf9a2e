#include "pass/observer.h"

#include <algorithm>

#include "model/streams.h"
#include "pass/finite.h"

namespace rankscope {
namespace {

// Whether the site is that of the branch's patterns, or of the scores they are made of.
bool is_of(const SiteInfo& site, std::string_view branch) {
  if (!site.name.starts_with(branch)) return false;
  const std::string_view what = site.name.substr(branch.size());
  return what == ".hook_pattern" || what == ".hook_attn_scores";
}

bool is_shown(const SiteInfo& site) {
  return site.name == ReportSample::kSite || site.like == ReportSample::kSite;
}

}  // namespace

Observer::Observer(const PassPlan& plan, int layer, const ModelSpec& spec, const std::vector<Name>& variants,
                   ReportSample* report_sample, Crossing& crossing,
                   std::function<void(const std::string&)> late)
    : layer_(layer), report_sample_(report_sample), crossing_(crossing), late_(std::move(late)) {
  const BlockSpec& block = spec.blocks[static_cast<size_t>(layer)];
  if (const BranchSpec* b = block.attention_branch()) attention_ = *b->attention();
  if (const BranchSpec* b = cross_branch(block)) {
    cross_ = std::make_unique<Cross>(Cross{*b, spec});
    cross_->spec.blocks[static_cast<size_t>(layer)] = attention_alone(block, b->name);
  }
  for (const SiteInfo& site : sites()) {
    if (!site.in_block) continue;
    if (site.shown_by == ShownBy::output) output_ = &site;
    if (layer == 0 && site.shown_by == ShownBy::input) continue;  // seen after embedding
    if (!cross_ && !site.like.empty()) continue;
    // What runs shows what it has; weights are shown by the pass, which has to ask.
    if (site.form == SiteForm::weights && !site.present(spec, block)) continue;
    // Several parts may have a site of that name; a block has one of them.
    if (std::any_of(sites_.begin(), sites_.end(), [&](const Watched& w) { return w.site.name == site.name; }))
      continue;
    const Site at{.name = full_name(site),
                  .layer = layer,
                  .depth = site.shown_by == ShownBy::output ? layer + 1 : layer,
                  .stream = site.of_cross ? kCrossStream : plan.stream,
                  .like = site.like.empty() ? "" : fmt::format("blocks.{}.{}", layer, site.like)};
    SiteLenses lenses(plan, at, site.of_cross ? cross_->spec : spec, variants, crossing);
    if (!lenses.empty()) sites_.push_back({site, std::move(lenses)});
  }
}

std::string Observer::full_name(const SiteInfo& site) const {
  return fmt::format("blocks.{}.{}", layer_, site.name);
}

void Observer::weights(const BlockSpec& block, const Weights& weights) {
  weights_ = &weights;
  if (cross_) cross_->weights = attention_alone(weights, cross_->branch);
  for (Watched& w : sites_) {
    // What a block gave is read beside the norm behind it.
    if (w.site.form != SiteForm::weights && w.site.shown_by != ShownBy::output) continue;
    if (w.site.of_cross)
      w.lenses.weights({attention_alone(block, cross_->branch.name), cross_->weights});
    else
      w.lenses.weights({block, weights});
  }
}

void Observer::enter(const Batch& batch, const at::Tensor& input,
                     const std::map<std::string, OtherStream>& others) {
  batch_ = &batch;
  packing_ = packing_of(batch);
  input_ = input;
  if (cross_) cross_->keys = packing_of(others.at(cross_->branch.reads).batch);
}

const AttentionSpec& Observer::attention_of(const SiteInfo& site) const {
  return site.of_cross ? *cross_->branch.attention() : attention_;
}

bool Observer::wants(std::string_view site) const {
  return std::any_of(sites_.begin(), sites_.end(),
                     [&](const Watched& w) { return w.site.name == site || w.site.made_of == site; });
}

bool Observer::looks_inside() const {
  return std::any_of(sites_.begin(), sites_.end(),
                     [](const Watched& w) { return w.site.shown_by == ShownBy::part; });
}

void Observer::see(std::string_view site, const at::Tensor& x, const TilePlace& place) {
  for (Watched& w : sites_) {
    if (w.site.name == site) show(w, x, place);
    if (w.site.made_of == site) {
      const at::Tensor& W_O = (w.site.of_cross ? cross_->weights : *weights_).get("attn.W_O");
      const int64_t modules = attention_of(w.site).modules;  // of which the heads are averaged
      w.lenses.factored({x, modules == 1 ? W_O : W_O / static_cast<double>(modules), input_, packing_});
    }
  }
}

void Observer::show(Watched& w, const at::Tensor& x, const TilePlace& place) {
  if (w.site.form == SiteForm::whole) return w.lenses.whole({x, packing_});
  if (w.site.form == SiteForm::experts) return w.lenses.expert({place.first_sample, x});
  const AttentionSpec& a = attention_of(w.site);
  const TileView view{x, place, a.causal, a.window, packing_, w.site.of_cross ? &cross_->keys : nullptr};
  if (w.site.finite) watch(w.site, x, place);
  w.lenses.tile(view);
  if (report_sample_ != nullptr && is_shown(w.site))
    report_sample_->pattern(full_name(w.site), view, crossing_);
}

bool Observer::reads_long(std::string_view branch) const {
  return std::all_of(sites_.begin(), sites_.end(),
                     [&](const Watched& w) { return !is_of(w.site, branch) || w.lenses.reads_long(); });
}

void Observer::see_long(std::string_view branch, const LongPattern& pattern, const TilePlace& place) {
  for (Watched& w : sites_) {
    if (!is_of(w.site, branch)) continue;
    const AttentionSpec& a = attention_of(w.site);
    const LongView view{pattern,  place,    a.causal,
                        a.window, packing_, w.site.of_cross ? &cross_->keys : nullptr};
    if (w.site.finite) watch(w.site, pattern.mass().unsqueeze(-1), place);  // a row's sum says whether it is
    w.lenses.long_pattern(view);
    if (report_sample_ != nullptr && is_shown(w.site)) show_sample(w, view);
  }
}

// The one sample that a report shows is read row by row after all.
void Observer::show_sample(const Watched& w, const LongView& view) {
  const LongPattern& p = view.pattern;
  const int64_t bytes = int64_t{4} << (p.mass().is_cuda() ? 28 : 20),
                step = std::max<int64_t>(1, bytes / (p.heads() * p.keys() * int64_t{sizeof(float)}));
  for (int64_t s = 0; s < p.samples(); ++s) {
    if (packing_.samples[static_cast<size_t>(view.place.first_sample + s)] != kShownSample) continue;
    for (int64_t row = 0; row < view.place.queries; row += step) {
      const int64_t end = std::min(row + step, view.place.queries);
      const at::Tensor rows = p.rows(s, 1, 0, p.heads(), at::arange(row, end, at::kLong));
      const TilePlace place{view.place.first_sample + s, row, view.place.queries};
      report_sample_->pattern(full_name(w.site), {rows, place, view.causal, view.window, packing_, view.keys},
                              crossing_);
    }
  }
}

void Observer::output(const at::Tensor& x) {
  input_.reset();
  watch(*output_, x, {});
  see(output_->name, x, {});
}

// On the host the block ends here. From a device the answer comes with the layer's numbers.
void Observer::watch(const SiteInfo& site, const at::Tensor& x, const TilePlace& place) {
  watch_finite(x, place, crossing_,
               [late = crossing_.late(x) ? late_ : nullptr, name = full_name(site), batch = batch_,
                place](int64_t row) {
                 const std::string where = fmt::format("{}, {}", name, token_of(*batch, place, row));
                 if (!late) throw NotFinite{where};
                 late(where);
               });
}

void Observer::finish() {
  for (Watched& w : sites_) w.lenses.finish(report_sample_);
}

void Observer::flush(ResultTable& table) {
  for (Watched& w : sites_) w.lenses.flush(table);
}

}  // namespace rankscope
