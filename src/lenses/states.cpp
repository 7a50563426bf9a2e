// How full the state of linear attention is: its effective rank after 2, 4, 8, ... tokens, beside the pairs
// of key and value it could hold by then. Every token adds one pair, so the rank after n of them is at most
// n, and never more than the state is wide.
#include <ATen/ATen.h>

#include <algorithm>
#include <bit>

#include "lenses/lens.h"
#include "lenses/support/numbers.h"
#include "model/states.h"
#include "spectral/batch.h"

namespace rankscope {
namespace {

// As they are declared below: after 2 to kLastDoubling tokens, after all, and the width.
constexpr size_t kStateLast = std::bit_width(static_cast<uint64_t>(kLastDoubling)) - 1,
                 kStateWidth = kStateLast + 1, kStateNumbers = kStateLast + 2;

class States : public Measurement {
  at::Tensor tile(const TileView& view) override {
    if (view.place.first_row == 0) tiles_.clear();
    tiles_.push_back(view.last() && tiles_.empty() ? view.tile : view.tile.clone());
    if (!view.last()) return {};
    const at::Tensor all = (tiles_.size() == 1 ? tiles_.front() : at::cat(tiles_, 2)).contiguous();
    tiles_.clear();
    const std::vector<int64_t> after =
        state_tokens(view.causal, view.packing.length(view.place.first_sample));
    const auto count = static_cast<int64_t>(after.size());
    const int64_t S = all.size(0), H = all.size(1), rows = all.size(2) / count, columns = all.size(3);
    const std::vector<Spectrum> spectra = spectra_of_batch(all.view({S * H * count, rows, columns}));
    Numbers numbers(S, H, kStateNumbers);
    for (int64_t s = 0; s < S; ++s)
      for (int64_t h = 0; h < H; ++h) {
        double* to = numbers.of(s, h);
        for (int64_t i = 0; i < count; ++i) {
          const double rank = effective_rank(spectra[static_cast<size_t>((s * H + h) * count + i)]);
          const auto n = static_cast<uint64_t>(after[static_cast<size_t>(i)]);
          if (n >= 2 && n <= kLastDoubling && std::has_single_bit(n)) to[std::bit_width(n) - 2] = rank;
          if (i + 1 == count) to[kStateLast] = rank;
        }
        to[kStateWidth] = static_cast<double>(std::min(rows, columns));
      }
    return numbers.tensor();
  }

  std::vector<at::Tensor> tiles_;
};

constexpr std::string_view kStateFormula = "effective rank of the state after so many tokens",
                           kStateMeaning =
                               "at most the number of tokens and state_width; as much: every pair has "
                               "a direction of its own";

}  // namespace

extern const Lens lens_states{
    .name = "states",
    .summary = "Rank of the state of linear attention (linear, decay, delta) as tokens are stored",
    .cost = "about 0.2 forward passes at T = 128",
    .sites = {{"attn.hook_state", SiteForm::tiles}},
    .metrics =
        {{.name = "state_rank_at_2", .formula = kStateFormula, .meaning = kStateMeaning, .high = 2},
         {.name = "state_rank_at_4", .formula = kStateFormula, .meaning = kStateMeaning, .high = 4},
         {.name = "state_rank_at_8", .formula = kStateFormula, .meaning = kStateMeaning, .high = 8},
         {.name = "state_rank_at_16", .formula = kStateFormula, .meaning = kStateMeaning, .high = 16},
         {.name = "state_rank_at_32", .formula = kStateFormula, .meaning = kStateMeaning, .high = 32},
         {.name = "state_rank_at_64", .formula = kStateFormula, .meaning = kStateMeaning, .high = 64},
         {.name = "state_rank_at_128", .formula = kStateFormula, .meaning = kStateMeaning, .high = 128},
         {.name = "state_rank_at_256", .formula = kStateFormula, .meaning = kStateMeaning, .high = 256},
         {.name = "state_rank_at_512", .formula = kStateFormula, .meaning = kStateMeaning, .high = 512},
         {.name = "state_rank",
          .formula = "effective rank of the state after the last token, exp(-sum p log p), p = sigma / "
                     "sum sigma",
          .meaning = "directions it holds; at most the number of tokens and state_width"},
         {.name = "state_width",
          .formula = "min(width of a key, width of a value)",
          .meaning = "the most pairs a state can keep apart"}},
    .start = [](const LensContext&) -> std::unique_ptr<Measurement> { return std::make_unique<States>(); }};

}  // namespace rankscope
