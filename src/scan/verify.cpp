#include "scan/verify.h"

#include <c10/core/GradMode.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "checkpoint/load.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "model/sites.h"
#include "model/streams.h"
#include "pass/input.h"
#include "tensors/norm.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

// The saved inputs as samples without their padding, and where each of their tokens was.
struct Saved {
  std::vector<Sample> samples;
  std::vector<std::vector<int64_t>> columns;  // per sample, the columns its tokens had in the padded rows
  int64_t tokens = 0;                         // of a padded row
};

at::Tensor optional_tensor(const SafetensorsFile& file, const char* name) {
  return file.tensors().count(name) > 0 ? read_tensor(file, name) : at::Tensor();
}

// Sizes that do not matter are -1.
void require_shape(const at::Tensor& t, const std::string& name, const std::vector<int64_t>& expected,
                   const SafetensorsFile& file) {
  bool same = t.dim() == static_cast<int64_t>(expected.size());
  for (size_t i = 0; same && i < expected.size(); ++i)
    same = expected[i] < 0 || expected[i] == t.size(static_cast<int64_t>(i));
  if (same) return;
  std::vector<std::string> words;
  for (const int64_t n : expected) words.push_back(n < 0 ? "any" : std::to_string(n));
  throw Error(fmt::format("{} should have the shape [{}], but has [{}]", name, fmt::join(words, ", "),
                          fmt::join(t.sizes(), ", ")))
      .in(file.path().string())
      .hint("check that the activations are those of this model");
}

// `prefix` is "decoder_" for the decoder of a network that has an encoder, too.
Saved read_saved(const SafetensorsFile& file, const StreamSpec& spec, const std::string& prefix = {}) {
  Saved saved;
  if (spec.embedding.vocabulary == 0) {
    const EmbeddingSpec& e = spec.embedding;
    if (e.sounds > 0) {
      require_shape(read_tensor(file, "input_features"), "input_features", {-1, e.sounds, 2 * e.positions},
                    file);
      saved.samples = read_features(file.path(), INT64_MAX);
    } else {
      require_shape(read_tensor(file, "pixel_values"), "pixel_values",
                    {-1, e.channels, e.image_size, e.image_size}, file);
      saved.samples = read_pixels(file.path(), INT64_MAX);
    }
    saved.tokens = e.given_tokens();
    std::vector<int64_t> all(static_cast<size_t>(saved.tokens));
    std::iota(all.begin(), all.end(), int64_t{0});
    saved.columns.assign(saved.samples.size(), all);
    return saved;
  }
  const std::string ids_name = prefix + "input_ids", mask_name = prefix + "attention_mask";
  const auto whole = [&](const at::Tensor& t, const std::string& name) {
    if (at::isFloatingType(t.scalar_type()))
      throw Error(
          fmt::format("{} should hold whole numbers, but holds {}", name, std::string(t.dtype().name())))
          .in(file.path().string());
    return t.to(at::kLong);
  };
  const at::Tensor ids = whole(read_tensor(file, ids_name), ids_name);
  require_shape(ids, ids_name, {-1, -1}, file);
  const auto beside_ids = [&](const std::string& name) {
    const at::Tensor t = optional_tensor(file, name.c_str());
    if (!t.defined()) return t;
    require_shape(t, name, {ids.size(0), ids.size(1)}, file);
    return whole(t, name);
  };
  const at::Tensor mask = beside_ids(mask_name), types = beside_ids("token_type_ids");
  const auto value = [](const at::Tensor& t, int64_t i, int64_t j) { return t[i][j].item<int64_t>(); };
  for (int64_t i = 0; i < ids.size(0); ++i) {
    Sample s;
    std::vector<int64_t> columns;
    int64_t real = 0;  // some count only tokens that are no padding, by their ids (RoBERTa) or by the mask
    const bool by_id = spec.embedding.padding_id >= 0, by_mask = !spec.embedding.padding_counts;
    for (int64_t j = 0; j < ids.size(1); ++j) {
      const int64_t id = value(ids, i, j);
      const bool hidden = mask.defined() && value(mask, i, j) == 0;
      const bool padding = by_id && id == spec.embedding.padding_id;
      const int64_t position = padding            ? -1
                               : by_id || by_mask ? real
                                                  : j;  // -1: the one in front of the first
      real += by_id ? !padding : !hidden;
      if (hidden) continue;
      s.ids.push_back(id);
      s.positions.push_back(position);
      if (types.defined()) s.types.push_back(value(types, i, j));
      columns.push_back(j);
    }
    if (columns.empty())
      throw Error(fmt::format("sample {} has no token that its attention_mask allows", i))
          .in(file.path().string());
    saved.samples.push_back(std::move(s));
    saved.columns.push_back(std::move(columns));
  }
  saved.tokens = ids.size(1);
  return saved;
}

// Differences against one saved tensor, gathered sample by sample.
class Gauge {
 public:
  Gauge(const SafetensorsFile& file, std::string name) : error_{std::move(name)} {
    if (file.tensors().count(error_.tensor) == 0) return;
    reference_ = read_tensor(file, error_.tensor).to(at::kDouble);
    error_.magnitude = 0;
  }
  bool present() const { return reference_.defined(); }
  const at::Tensor& reference() const { return reference_; }

  void compare(const at::Tensor& ours, const at::Tensor& theirs) {
    const at::Tensor difference = (ours.to(at::kCPU, at::kDouble) - theirs).abs();
    // A NaN must not pass: max() alone would drop it.
    const double largest = difference.max().item<double>();
    error_.largest =
        std::isnan(largest) || std::isnan(error_.largest) ? std::nan("") : std::max(error_.largest, largest);
    sum_ += difference.sum().item<double>();
    count_ += difference.numel();
    error_.magnitude = std::max(error_.magnitude, theirs.abs().max().item<double>());
  }
  LayerError result() const {
    LayerError e = error_;
    e.mean = count_ > 0 ? sum_ / static_cast<double>(count_) : 0;
    return e;
  }

 private:
  LayerError error_;
  at::Tensor reference_;
  double sum_ = 0;
  int64_t count_ = 0;
};

// One stream on its way: the samples that enter it, and the names its states have in the file.
struct Checked {
  const StreamSpec& spec;
  std::string prefix;  // "encoder_", "decoder_" or nothing
  Saved saved;
  std::vector<Batch> batches = {};
  std::vector<at::Tensor> x = {};
};

// More than any rounding, in whatever type the file was recorded.
constexpr double kAnotherNetwork = 1e-2;

double worst_of(const std::vector<LayerError>& errors) {
  double worst = 0;
  for (const LayerError& e : errors)
    if (!(e.relative() <= worst)) worst = e.relative();  // a NaN is the worst
  return std::isnan(worst) ? std::numeric_limits<double>::infinity() : worst;
}

class Verifier : public BlockObserver {
 public:
  explicit Verifier(const VerifyRequest& request)
      : checkpoint_(request.model),
        file_(request.against),
        spec_(checkpoint_.spec()),
        source_(checkpoint_source(checkpoint_, request.dtype, request.device)) {}

  bool has_rounded_slopes() const {
    const BranchSpec* b = spec_.blocks.front().attention_branch();
    return b != nullptr && b->attention()->alibi_rounded;
  }
  /// As the path of Hugging Face's Falcon that returns attention matrices does since version 5: it adds ALiBi
  /// to the scores, and once more with the mask. The path that answers without them adds it once, as we do.
  void add_slopes_twice() {
    for (BlockSpec& block : spec_.blocks)
      for (double& slope : block.attention().alibi) slope *= 2;  // exact in bfloat16, too
  }

  std::vector<LayerError> run() {
    for (const StreamSpec& source : spec_.sources) {
      streams_.push_back({source, source.name + "_", read_saved(file_, source)});
      follow(streams_.back());
    }
    const std::string prefix = spec_.sources.empty() ? "" : "decoder_";
    streams_.push_back({spec_, prefix, read_saved(file_, spec_, prefix)});
    follow(streams_.back());
    if (spec_.output.kind != HeadKind::none && file_.tensors().count("logits") > 0) logits(streams_.back());
    if (results_.empty())
      throw Error("the file holds no hidden_states.* or attentions.* to compare with")
          .in(file_.path().string());
    refuse_others();
    return results_;
  }

  bool wants(std::string_view site) const override { return gauge_of(site) != nullptr; }
  void see(std::string_view site, const at::Tensor& tile, const TilePlace& place) override {
    Gauge* gauge = gauge_of(site);
    if (gauge == nullptr) return;
    const at::Tensor theirs = gauge->reference()[static_cast<int64_t>(sample_)],
                     index = columns(*at_, sample_);
    if (site == "mlp.hook_router") return gauge->compare(tile, theirs.index_select(0, index));
    const Checked& keys = site == "cross.hook_pattern" ? streams_.front() : *at_;
    gauge->compare(tile[0], theirs.index_select(1, index.narrow(0, place.first_row, tile.size(2)))
                                .index_select(2, columns(keys, sample_)));
  }

 private:
  // Embedding, blocks and final norm of one stream, each compared with what the file holds of it.
  void follow(Checked& s) {
    at_ = &s;
    if (s.saved.samples.empty()) throw Error("the file holds no samples").in(file_.path().string());
    if (s.saved.samples.size() != streams_.front().saved.samples.size())
      throw Error("encoder and decoder have different numbers of samples").in(file_.path().string());
    // One sample a batch: the saved tensors are cut out sample by sample anyway.
    const ModelSpec alone = stream_alone(s.spec, spec_);
    for (const Sample& sample : s.saved.samples)
      s.batches.push_back(make_batches({sample}, alone, 1).front());
    embed(s);
    hidden(s, 0);
    for (int64_t l = 0; l < s.spec.depth(); ++l) {
      block(s, l);
      if (l + 1 < s.spec.depth() || !normed_last(s)) hidden(s, l + 1);
    }
    if (s.spec.final_norm.there()) {
      const Weights weights = source_->load(stream_prefix(s.spec) + "ln_final");
      for (at::Tensor& t : s.x) t = apply_norm(t, s.spec.final_norm, weights, "");
    }
    if (normed_last(s)) hidden(s, s.spec.depth());
    compare(last_name(s), s, s.x);
  }

  void embed(Checked& s) {
    const ModelSpec alone = stream_alone(s.spec, spec_);
    const auto own = s.spec.name.empty() ? nullptr : stream_source(*source_, 0);  // at most one runs first
    WeightSource& from = own ? *own : *source_;
    const Weights weights = from.load("embed");
    for (const Batch& b : s.batches) s.x.push_back(rankscope::embed(b, alone, weights, from));
  }

  void block(Checked& s, int64_t l) {
    const BlockSpec& block = s.spec.blocks[static_cast<size_t>(l)];
    const Weights weights = source_->load(fmt::format("{}blocks.{}", stream_prefix(s.spec), block.weights));
    const BlockPlan plan(block, spec_.width);
    const auto open = [&](const char* site, const std::string& name, const std::vector<int64_t>& shape) {
      Gauge gauge(file_, name);
      if (!gauge.present()) return;
      require_shape(gauge.reference(), name, shape, file_);
      gauges_.emplace(site, std::move(gauge));
    };
    gauges_.clear();
    if (has_pattern(block))
      open("attn.hook_pattern", fmt::format("{}attentions.{}", s.prefix, patterns_before(s, l)),
           {count(s), block.attention().heads, s.saved.tokens, s.saved.tokens});
    if (!spec_.sources.empty() && s.spec.name.empty())
      open("cross.hook_pattern", fmt::format("cross_attentions.{}", l),
           {count(s), block.attention().heads, s.saved.tokens, streams_.front().saved.tokens});
    open("mlp.hook_router", fmt::format("router_logits.{}", l), {count(s), s.saved.tokens, -1});
    for (sample_ = 0; sample_ < s.x.size(); ++sample_) {
      std::map<std::string, OtherStream> others;
      for (const Checked& before : streams_)
        if (&before != &s)
          others.emplace(before.spec.name, OtherStream{before.x[sample_], before.batches[sample_]});
      s.x[sample_] = run_block(s.x[sample_], {plan, weights, s.batches[sample_], *this, &others});
    }
    for (const auto& [site, gauge] : gauges_) results_.push_back(gauge.result());
    gauges_.clear();
  }

  // A layer that only the file has would be no match, and nobody would be told.
  void refuse_others() const {
    std::set<std::string_view> compared;
    for (const LayerError& r : results_) compared.insert(r.tensor);
    for (const auto& [name, entry] : file_.tensors())
      for (const char* kind : {"hidden_states.", "attentions.", "router_logits."})
        if (name.find(kind) != name.npos && !compared.contains(name))
          throw Error(fmt::format("the file holds {}, and this model has nothing to compare with it",
                                  printable(name)))
              .in(file_.path().string())
              .hint("check that the activations are those of this model");
  }

  // Hugging Face numbers the matrices that there are: layers without one (linear attention) do not count.
  static bool has_pattern(const BlockSpec& block) {
    return site_named("attn.hook_pattern").present({}, block);
  }
  static int64_t patterns_before(const Checked& s, int64_t layer) {
    return std::count_if(s.spec.blocks.begin(), s.spec.blocks.begin() + layer, has_pattern);
  }

  Gauge* gauge_of(std::string_view site) const {
    const auto it = gauges_.find(site);
    return it == gauges_.end() ? nullptr : &it->second;
  }

  static std::string last_name(const Checked& s) {
    return s.prefix == "encoder_" ? "encoder_last_hidden_state" : "last_hidden_state";
  }

  // Hugging Face applies the final norm to the last hidden state of decoders, and not to a ViT's or CLIP's. A
  // file that holds both tells: the two are then equal, or they are not.
  bool normed_last(const Checked& s) const {
    if (!s.spec.final_norm.there()) return false;
    const std::string last = fmt::format("{}hidden_states.{}", s.prefix, s.spec.depth());
    if (file_.tensors().count(last) == 0 || file_.tensors().count(last_name(s)) == 0)
      return s.spec.embedding.vocabulary > 0;
    return at::equal(read_tensor(file_, last), read_tensor(file_, last_name(s)));
  }

  static int64_t count(const Checked& s) { return static_cast<int64_t>(s.saved.samples.size()); }

  static at::Tensor columns(const Checked& s, size_t sample) {
    return at::tensor(s.saved.columns[sample], at::kLong);
  }

  void hidden(const Checked& s, int64_t index) {
    compare(fmt::format("{}hidden_states.{}", s.prefix, index), s, s.x);
  }

  // What the library calls the last state of OPT is what its vocabulary reads: mapped to a width of its own.
  bool is_mapped(const at::Tensor& reference, const at::Tensor& x) const {
    const OutputSpec& o = spec_.output;
    return o.kind == HeadKind::transformed && o.activation == Activation::identity && o.width != x.size(1) &&
           reference.dim() == 3 && reference.size(2) == o.width;
  }

  void compare(const std::string& name, const Checked& s, std::vector<at::Tensor> x) {
    Gauge gauge(file_, name);
    if (!gauge.present()) return;
    if (is_mapped(gauge.reference(), x.front())) {
      const Weights head = source_->load("unembed");
      for (at::Tensor& t : x) t = before_vocabulary(t, spec_, head);
    }
    require_shape(gauge.reference(), name, {count(s), s.saved.tokens, x.front().size(1)}, file_);
    for (size_t i = 0; i < x.size(); ++i)
      gauge.compare(x[i], gauge.reference()[static_cast<int64_t>(i)].index_select(0, columns(s, i)));
    results_.push_back(gauge.result());
  }

  void logits(const Checked& s) {
    const Weights head = source_->load("unembed");
    const at::Tensor W = source_->row_range("unembed.W_U", 0, spec_.output.vocabulary);
    std::vector<at::Tensor> x = s.x;
    for (at::Tensor& t : x)
      t = capped(at::linear(before_vocabulary(t, spec_, head), W, head.get_or_none("b_U")), spec_.output);
    compare("logits", s, x);
  }

  Checkpoint checkpoint_;
  SafetensorsFile file_;
  ModelSpec spec_;
  std::unique_ptr<WeightSource> source_;
  std::deque<Checked> streams_;                               // those that run first come first
  const Checked* at_ = nullptr;                               // the one at hand
  mutable std::map<std::string, Gauge, std::less<>> gauges_;  // of the block at hand, by site
  std::vector<LayerError> results_;
  size_t sample_ = 0;
};

}  // namespace

std::vector<LayerError> verify(const VerifyRequest& request) {
  dtype_of(request.dtype);
  use_threads(request.threads);
  const c10::NoGradGuard no_grad;
  Verifier verifier(request);
  std::vector<LayerError> errors = verifier.run();
  if (!verifier.has_rounded_slopes() || worst_of(errors) < kAnotherNetwork) return errors;
  Verifier twice(request);
  twice.add_slopes_twice();
  std::vector<LayerError> others = twice.run();
  return worst_of(others) < kAnotherNetwork ? others : errors;
}

}  // namespace rankscope
