// A lens is one file of lenses/: the sites of the forward pass it reads, which metrics it reports, what they
// mean, and how they are computed. The pass hands it views, never copies; it returns tensors of numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "base/tensor_fwd.h"
#include "model/sites.h"
#include "spec/model.h"
#include "tensors/weights.h"

namespace rankscope {

/// One thing a lens reads. A name of model/sites.h means that site of every block that has it; with a block
/// in front, as in "blocks.0.hook_resid_pre", of that one alone.
struct SiteUse {
  std::string_view site;
  SiteForm form;
};

enum class Mean { arithmetic, geometric };

struct MetricInfo {
  std::string_view name;  // carries the definition; `rankscope lenses` prints these
  std::string_view formula;
  std::string_view meaning;  // one line, what a high or low value says
  Mean mean = Mean::arithmetic;
  double low = 0.0;  // range the contract test holds it to
  double high = 1e300;
  int version = 1;  // raised when a bug fix changes its numbers; a new meaning gets a new name
};

/// How the tokens of a batch are packed: sample s of the batch owns rows offsets[s] .. offsets[s + 1].
/// There is no padding anywhere in the pass.
struct Packing {
  std::span<const int64_t> offsets;  // [S + 1]
  std::span<const int64_t> samples;  // [S] global sample numbers
  std::span<const uint8_t>
      content;  // [N] 1 where the token is content: no special token, not position 0 if causal
  std::span<const int64_t> ids = {};  // [N] words; empty where tokens are none
  int64_t count() const { return static_cast<int64_t>(samples.size()); }
  int64_t length(int64_t s) const {
    return offsets[static_cast<size_t>(s) + 1] - offsets[static_cast<size_t>(s)];
  }
};

struct WholeView {
  const at::Tensor& x;  // [N, ...], float32 or float64, any device
  const Packing& packing;
};

/// Rows [first_row, first_row + R) of matrices of queries and keys, of samples first_sample .. + S. Either
/// all rows at once, or S == 1 and the tiles of a sample come in order. Queries and keys may differ in
/// number.
struct TileView {
  const at::Tensor& tile;  // [S, H, R, keys]
  TilePlace place;
  bool causal;
  int64_t window;  // 0: none
  const Packing& packing;
  const Packing* keys = nullptr;  // how the keys are packed, where they are another stream's
  bool last() const;              // no more rows of these samples
  const Packing& key_packing() const { return keys != nullptr ? *keys : packing; }
};

/// attn.hook_result as its factors: head h writes z[:, h] W_O[:, h d_v .. + d_v]^T.
struct FactoredView {
  const at::Tensor& z;    // [N, H, d_v]: attention times values
  const at::Tensor& W_O;  // [d, H * d_v]
  const at::Tensor& x;    // [N, d]: the residual stream before the block
  const Packing& packing;
};

/// What one expert wrote into the tokens of a batch that took it, before their shares of it.
struct ExpertView {
  int64_t expert;
  const at::Tensor& written;  // [n, d]
};

struct WeightsView {
  const BlockSpec& block;
  const Weights& weights;
};

constexpr int64_t kShownSample = 0;  // the one whose attention a report shows

struct LensContext {
  const ModelSpec& spec;
  int64_t layer;    // of the block, -1 for the embeddings
  uint64_t seed;    // for sampled rows
  int64_t samples;  // in all
  double sink;      // attention on one key, above uniform, that makes a head a sink: --threshold sink=
  /// What the same lens left for itself (Measurement::left) at the last block before that it looked at.
  std::shared_ptr<const void> before = {};
  std::string_view site = {};  // full name
};

/// One lens at one site of one state of the network: it is shown the site batch by batch, in the form it
/// asked for, and has one call for each form. What it returns may lie on any device; the recorder copies.
///
/// The numbers of a view: double, [rules, samples, heads + 1, metrics].
///   rules    1: every token counts ("all"); 2: all, then content tokens alone
///   samples  those of the view, in order
///   heads    the last is of all heads together, or of a site that has none
///   metrics  Lens::metrics, in order; NaN where one is not defined
/// An undefined tensor says nothing, as after a tile that is not the last.
///
/// lenses/support/numbers.h makes such tensors.
class Measurement {
 public:
  virtual ~Measurement() = default;
  virtual at::Tensor whole(const WholeView&);
  virtual at::Tensor tile(const TileView&);
  virtual at::Tensor factored(const FactoredView&);
  virtual void expert(const ExpertView&) {}
  virtual void weights(const WeightsView&) {}
  /// After the last batch, what is no mean over samples: double, [heads + 1, metrics, 3], the last being
  /// value, standard error and number of samples; NaN as above.
  virtual at::Tensor finish();
  /// After `finish`: what it wants to know at the next block.
  virtual std::shared_ptr<const void> left() { return {}; }
  /// One of Lens::arrays, [heads, ...], after `finish`; an undefined tensor where there is none.
  virtual at::Tensor array(std::string_view name);
};

struct Lens {
  std::string_view name;
  std::string_view summary;
  std::string_view cost;  // "0.1 forward passes at T = 128", measured
  std::vector<SiteUse> sites;
  std::vector<MetricInfo> metrics;
  std::unique_ptr<Measurement> (*start)(const LensContext&);
  bool on_request = false;                    // left out unless --lens names it
  std::vector<std::string_view> arrays = {};  // whole spectra it keeps for the page of a report
  /// Whole views take it long and it keeps nothing of them: a device measures beside the layers that follow.
  bool beside = false;
};

/// Whether the lens reads the site of that full name, as in "blocks.3.attn.hook_pattern".
bool reads(const Lens& lens, std::string_view site);

/// Throws where a lens names a site that does not exist, or asks for it in a form that it does not come in.
void check_sites(const Lens& lens);

/// Every lens, alphabetically (generated from the file names).
const std::vector<const Lens*>& lenses();

}  // namespace rankscope
