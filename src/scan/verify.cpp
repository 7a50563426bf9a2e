#include "scan/verify.h"

#include <c10/core/GradMode.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "checkpoint/load.h"
#include "model/block.h"
#include "model/ends.h"
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

Saved read_saved(const SafetensorsFile& file, const ModelSpec& spec) {
  Saved saved;
  if (spec.embedding.vocabulary == 0) {
    const EmbeddingSpec& e = spec.embedding;
    require_shape(read_tensor(file, "pixel_values"), "pixel_values",
                  {-1, e.channels, e.image_size, e.image_size}, file);
    saved.samples = read_pixels(file.path(), INT64_MAX);
    saved.tokens = e.patch_tokens();
    std::vector<int64_t> all(static_cast<size_t>(saved.tokens));
    std::iota(all.begin(), all.end(), int64_t{0});
    saved.columns.assign(saved.samples.size(), all);
    return saved;
  }
  const at::Tensor ids = read_tensor(file, "input_ids").to(at::kLong);
  require_shape(ids, "input_ids", {-1, -1}, file);
  const at::Tensor mask = optional_tensor(file, "attention_mask");
  const at::Tensor types = optional_tensor(file, "token_type_ids");
  for (const at::Tensor* t : {&mask, &types})
    if (t->defined())
      require_shape(*t, t == &mask ? "attention_mask" : "token_type_ids", {ids.size(0), ids.size(1)}, file);
  const auto value = [](const at::Tensor& t, int64_t i, int64_t j) { return t[i][j].item<int64_t>(); };
  for (int64_t i = 0; i < ids.size(0); ++i) {
    Sample s;
    std::vector<int64_t> columns;
    int64_t real = 0;  // some count only tokens that are no padding, by their ids (RoBERTa) or by the mask
    const bool by_id = spec.embedding.padding_id >= 0, by_mask = !spec.embedding.padding_counts;
    for (int64_t j = 0; j < ids.size(1); ++j) {
      const int64_t id = value(ids, i, j);
      const bool hidden = mask.defined() && value(mask.to(at::kLong), i, j) == 0;
      const int64_t position = by_id || by_mask ? real : j;
      real += by_id ? id != spec.embedding.padding_id : !hidden;
      if (hidden) continue;
      s.ids.push_back(id);
      s.positions.push_back(position);
      if (types.defined()) s.types.push_back(value(types.to(at::kLong), i, j));
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

class Verifier : public BlockObserver {
 public:
  explicit Verifier(const VerifyRequest& request)
      : checkpoint_(request.model),
        file_(request.against),
        spec_(checkpoint_.spec()),
        source_(checkpoint_source(checkpoint_, request.dtype, request.device)),
        saved_(read_saved(file_, spec_)) {
    if (saved_.samples.empty()) throw Error("the file holds no samples").in(file_.path().string());
    // One sample a batch: the saved tensors are cut out sample by sample anyway.
    for (size_t i = 0; i < saved_.samples.size(); ++i) {
      batches_.push_back(make_batches({saved_.samples[i]}, spec_, 1).front());
    }
  }

  std::vector<LayerError> run() {
    std::vector<at::Tensor> x;
    {
      const Weights weights = source_->load("embed");
      for (const Batch& b : batches_) x.push_back(embed(b, spec_, weights, *source_));
    }
    hidden(0, x);
    for (int64_t l = 0; l < spec_.depth(); ++l) {
      const BlockSpec& block = spec_.blocks[static_cast<size_t>(l)];
      const Weights weights = source_->load(fmt::format("blocks.{}", block.weights));
      attention_ = std::make_unique<Gauge>(file_, fmt::format("attentions.{}", l));
      if (attention_->present())
        require_shape(attention_->reference(), fmt::format("attentions.{}", l),
                      {count(), block.attention().heads, saved_.tokens, saved_.tokens}, file_);
      router_ = std::make_unique<Gauge>(file_, fmt::format("router_logits.{}", l));
      for (sample_ = 0; sample_ < x.size(); ++sample_)
        x[sample_] = run_block(x[sample_], block, weights, batches_[sample_], *this);
      if (attention_->present()) results_.push_back(attention_->result());
      if (router_->present()) results_.push_back(router_->result());
      if (l + 1 < spec_.depth() || !normed_last()) hidden(l + 1, x);
    }
    if (spec_.final_norm.there()) {
      const Weights weights = source_->load("ln_final");
      for (at::Tensor& t : x) t = apply_norm(t, spec_.final_norm, weights, "");
    }
    if (normed_last()) hidden(spec_.depth(), x);
    compare("last_hidden_state", x);
    if (spec_.output.kind != HeadKind::none && file_.tensors().count("logits") > 0) logits(x);
    if (results_.empty())
      throw Error("the file holds no hidden_states.* or attentions.* to compare with")
          .in(file_.path().string());
    return results_;
  }

  bool wants(std::string_view site) const override {
    return (site == "attn.hook_pattern" && attention_ && attention_->present()) ||
           (site == "mlp.hook_router" && router_ && router_->present());
  }
  void see(std::string_view site, const at::Tensor& tile, const TilePlace& place) override {
    if (!wants(site)) return;
    if (site == "mlp.hook_router") {
      require_shape(router_->reference(), "router_logits", {count(), saved_.tokens, tile.size(1)}, file_);
      return router_->compare(
          tile, router_->reference()[static_cast<int64_t>(sample_)].index_select(0, columns(sample_)));
    }
    const at::Tensor index = columns(sample_);
    const at::Tensor theirs = attention_->reference()[static_cast<int64_t>(sample_)]
                                  .index_select(1, index.narrow(0, place.first_row, tile.size(2)))
                                  .index_select(2, index);
    attention_->compare(tile[0], theirs);
  }

 private:
  // Hugging Face applies the final norm to the last hidden state of decoders, and not to a ViT's or CLIP's. A
  // file that holds both tells: the two are then equal, or they are not.
  bool normed_last() const {
    if (!spec_.final_norm.there()) return false;
    const std::string last = fmt::format("hidden_states.{}", spec_.depth());
    if (file_.tensors().count(last) == 0 || file_.tensors().count("last_hidden_state") == 0)
      return spec_.embedding.vocabulary > 0;
    return at::equal(read_tensor(file_, last), read_tensor(file_, "last_hidden_state"));
  }

  int64_t count() const { return static_cast<int64_t>(saved_.samples.size()); }

  at::Tensor columns(size_t sample) const { return at::tensor(saved_.columns[sample], at::kLong); }

  void hidden(int64_t index, const std::vector<at::Tensor>& x) {
    compare(fmt::format("hidden_states.{}", index), x);
  }

  // What the library calls the last state of OPT is what its vocabulary reads: mapped to a width of its own.
  bool is_mapped(const at::Tensor& reference, const at::Tensor& x) const {
    const OutputSpec& o = spec_.output;
    return o.kind == HeadKind::transformed && o.activation == Activation::identity && o.width != x.size(1) &&
           reference.dim() == 3 && reference.size(2) == o.width;
  }

  void compare(const std::string& name, std::vector<at::Tensor> x) {
    Gauge gauge(file_, name);
    if (!gauge.present()) return;
    if (is_mapped(gauge.reference(), x.front())) {
      const Weights head = source_->load("unembed");
      for (at::Tensor& t : x) t = before_vocabulary(t, spec_, head);
    }
    require_shape(gauge.reference(), name, {count(), saved_.tokens, x.front().size(1)}, file_);
    for (size_t i = 0; i < x.size(); ++i)
      gauge.compare(x[i], gauge.reference()[static_cast<int64_t>(i)].index_select(0, columns(i)));
    results_.push_back(gauge.result());
  }

  void logits(std::vector<at::Tensor> x) {
    const Weights head = source_->load("unembed");
    const at::Tensor W = source_->row_range("unembed.W_U", 0, spec_.output.vocabulary);
    for (at::Tensor& t : x)
      t = capped(at::linear(before_vocabulary(t, spec_, head), W, head.get_or_none("b_U")), spec_.output);
    compare("logits", x);
  }

  Checkpoint checkpoint_;
  SafetensorsFile file_;
  const ModelSpec& spec_;
  std::unique_ptr<WeightSource> source_;
  Saved saved_;
  std::vector<Batch> batches_;
  std::unique_ptr<Gauge> attention_, router_;  // of the block at hand
  std::vector<LayerError> results_;
  size_t sample_ = 0;
};

}  // namespace

std::vector<LayerError> verify(const VerifyRequest& request) {
  dtype_of(request.dtype);
  use_threads(request.threads);
  const c10::NoGradGuard no_grad;
  return Verifier(request).run();
}

}  // namespace rankscope
