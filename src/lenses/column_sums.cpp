// What keys get of attention that normalises over queries, too: the smallest and the largest sum of a column,
// beside the law that none falls below one over the number of keys (Ding et al. 2020). Softmax has no such
// law; what its keys get is the lens sinks'.
#include <ATen/ATen.h>

#include "attention/variant.h"
#include "base/table.h"
#include "lenses/lens.h"
#include "lenses/long_view.h"
#include "lenses/support/on_device.h"

namespace rankscope {
namespace {

// Kinds whose columns mean something; those of `law` divide shares of a column by at most the number of keys.
struct Columns {
  bool read = false, law = false;
};

Columns columns_of(const LensContext& context) {
  if (context.layer < 0 || context.layer >= context.spec.depth()) return {};
  const BranchSpec* b = context.spec.blocks[static_cast<size_t>(context.layer)].attention_branch();
  if (b == nullptr) return {};
  const std::string_view kind = attention_variant(b->attention()->variant).name;
  const bool law = kind == "doubly_normalised" || kind == "sinkhorn";
  return {law || kind == "hybrid_normalised" || kind == "prefix_normalised", law};
}

class ColumnSums : public Measurement, public LongMeasurement {
 public:
  explicit ColumnSums(Columns columns) : columns_(columns) {}

 private:
  at::Tensor tile(const TileView& view) override {
    if (!columns_.read) return {};
    const at::Tensor sums = view.tile.sum(2, false, at::kDouble);  // [S, H, keys]
    sums_ = view.place.first_row == 0 ? sums : sums_ + sums;
    if (!view.last()) return {};
    const double bound = columns_.law ? 1 / static_cast<double>(sums_.size(2)) : kNone;
    const at::Tensor least = sums_.amin(-1);
    return of_heads(at::stack({least, sums_.amax(-1), at::full_like(least, bound)}, -1));
  }

  // Softmax alone comes without its matrix.
  at::Tensor long_pattern(const LongView&) override { return {}; }

  Columns columns_;
  at::Tensor sums_;  // over the rows of the samples so far
};

}  // namespace

extern const Lens lens_column_sums{
    .name = "column_sums",
    .summary = "What the least and the best attended key get where attention normalises over queries, too",
    .cost = "about 0.04 forward passes at T = 128",
    .sites = {{"attn.hook_pattern", SiteForm::tiles}},
    .metrics = {{.name = "column_sum_min",
                 .formula = "least over keys of the sum over queries of A",
                 .meaning = "near 0: that key is explained away; queries / keys is the mean of all keys"},
                {.name = "column_sum_max",
                 .formula = "most over keys of the sum over queries of A",
                 .meaning = "large: queries agree on one key"},
                {.name = "column_sum_min_bound",
                 .formula = "1 / keys, of doubly_normalised and sinkhorn attention",
                 .meaning = "what column_sum_min cannot fall below, by the law of its kind",
                 .high = 1.0}},
    .start = [](const LensContext& context) -> std::unique_ptr<Measurement> {
      return std::make_unique<ColumnSums>(columns_of(context));
    }};

}  // namespace rankscope
