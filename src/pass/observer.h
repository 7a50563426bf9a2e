// Hands the tensors of one block to the lenses that asked, and watches for what is not finite.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/block.h"
#include "pass/site_lens.h"

namespace rankscope {

/// Thrown at a number that is no number, where the host sees it at once; the variant it belongs to ends here.
struct NotFinite {
  std::string where;
};

class Observer : public BlockObserver, public LongPatternObserver {
 public:
  /// `report_sample`, where given, takes what a report shows of the block. `late` is told where a number was
  /// not finite if that is read from a device: after the block, before `flush`.
  Observer(const PassPlan& plan, int layer, const ModelSpec& spec, const std::vector<Name>& variants,
           ReportSample* report_sample, Crossing& crossing,
           std::function<void(const std::string& where)> late);

  /// In the order of a block: its weights once, then for each batch its input, its sites and its output.
  void weights(const BlockSpec& block, const Weights& weights);
  void enter(const Batch& batch, const at::Tensor& input,
             const std::map<std::string, OtherStream>& others = {});
  bool wants(std::string_view site) const override;
  void see(std::string_view site, const at::Tensor& x, const TilePlace& place) override;
  bool reads_long(std::string_view branch) const override;
  void see_long(std::string_view branch, const LongPattern& pattern, const TilePlace& place) override;
  void output(const at::Tensor& x);
  void finish();
  /// Appends the rows, after everything has arrived.
  void flush(ResultTable& table);

  /// Whether a lens reads what only a part that runs can show.
  bool looks_inside() const;

 private:
  struct Watched {
    const SiteInfo& site;
    SiteLenses lenses;
  };
  void show(Watched& watched, const at::Tensor& x, const TilePlace& place);
  void show_sample(const Watched& watched, const LongView& view);
  void watch(const SiteInfo& site, const at::Tensor& x, const TilePlace& place);
  std::string full_name(const SiteInfo& site) const;

  // The attention to another stream, as lenses know a block's own.
  struct Cross {
    BranchSpec branch;
    ModelSpec spec;  // with that attention alone in the block at hand
    Weights weights = {};
    Packing keys = {};
  };
  const AttentionSpec& attention_of(const SiteInfo& site) const;

  AttentionSpec attention_;
  std::unique_ptr<Cross> cross_;
  int layer_;
  ReportSample* report_sample_;
  Crossing& crossing_;
  std::function<void(const std::string&)> late_;
  std::deque<Watched> sites_;  // those that somebody reads
  const SiteInfo* output_ = nullptr;
  const Weights* weights_ = nullptr;
  at::Tensor input_;
  const Batch* batch_ = nullptr;
  Packing packing_;
};

}  // namespace rankscope
