#include "train/export.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <numeric>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "spec/json.h"
#include "train/data.h"
#include "train/layout.h"
#include "train/networks.h"

namespace rankscope {
namespace {

using at::Tensor;
using Tensors = std::map<std::string, Tensor>;

// The points that become words: [rows, width of a point].
Tensor points_of(const TrialSpec& t, const TokenSet* words) {
  if (words != nullptr) return at::tensor(words->points, at::kDouble).view({-1, t.network.embedding.points});
  const int64_t tokens = token_count(t.task), sequences = (kExportedPoints + tokens - 1) / tokens;
  const TaskBatch batch = task_named(t.task.name).sample(t.task, *cpu_draw(kTestSeed, 0, 0, sequences));
  return batch.tokens.flatten(0, 1).narrow(0, 0, kExportedPoints).to(at::kDouble);
}

// Folds the maps in front of the first norm into the table of words and the table of positions.
class Folding {
 public:
  Folding(const EmbeddingSpec& e, int64_t width, std::string prefix, Tensors& tensors)
      : e_(e), width_(width), prefix_(std::move(prefix)), t_(tensors) {}

  EmbeddingSpec fold(const Tensor& points) {
    EmbeddingSpec out{.vocabulary = e_.vocabulary, .width = width_};
    Tensor words = e_.points > 0 ? points : take("W_E");
    if (e_.point_map) words = linear(words, "in");
    if (e_.point_activation) words = at::gelu(words);
    Tensor places = take("W_pos");
    if (e_.position_width > 0) {
      words = at::constant_pad_nd(words, {0, e_.position_width});
      if (places.defined()) places = at::constant_pad_nd(places, {e_.width, 0});
    }
    if (e_.map) {
      if (places.defined()) places = at::linear(places, t_.at(prefix_ + "W_map"));
      words = linear(words, "map");
    }
    out.vocabulary = words.size(0);
    out.norm = e_.norm_behind;
    t_["embed.W_E"] = words;
    if (places.defined()) {
      out.positions = places.size(0);
      t_["embed.W_pos"] = places;
    }
    for (const char* part : {"w", "b"})
      if (const Tensor norm = take(std::string("ln_post.") + part); norm.defined())
        t_[std::string("embed.ln.") + part] = norm;
    return out;
  }

 private:
  Tensor take(const std::string& name) {
    const auto node = t_.extract(prefix_ + name);
    return node.empty() ? Tensor() : node.mapped();
  }
  Tensor linear(const Tensor& x, const std::string& letter) {
    const Tensor W = take("W_" + letter), b = take("b_" + letter);
    const Tensor mapped = at::mm(x, W.t());
    return b.defined() ? mapped + b : mapped;
  }

  const EmbeddingSpec& e_;
  int64_t width_;
  std::string prefix_;
  Tensors& t_;
};

// The average over modules goes into the output map.
void fold_modules(BranchSpec& branch, const std::string& block, Tensors& tensors) {
  AttentionSpec* a = branch.attention();
  if (a == nullptr || a->modules == 1) return;
  Tensor& W_O = tensors.at(block + branch.name + ".W_O");
  W_O = W_O / static_cast<double>(a->modules);
  a->modules = 1;
}

// sum_h VO_h X p_h as ordinary attention: every head's value map is the identity, the merged maps are the
// output map, and queries do not see their place.
void one_stream(ModelSpec& s, Tensors& tensors) {
  BranchSpec& branch = s.blocks.front().branches.front();
  AttentionSpec& a = *branch.attention();
  const int64_t D = s.width, points = s.embedding.points;
  const std::string b = "blocks.0.attn.";
  branch.reads.clear();
  tensors[b + "W_V"] = at::eye(D, at::kDouble).repeat({a.heads, 1});
  tensors[b + "W_O"] = at::constant_pad_nd(tensors.at(b + "W_O"), {0, 0, 0, D - a.output_width});
  tensors[b + "W_Q"] = tensors.at(b + "W_Q").clone();
  if (points < D) tensors[b + "W_Q"].narrow(1, points, D - points).zero_();
  a.value_map = a.key_bias = a.output_bias = true;
  a.output_width = 0;
  s.sources.clear();
  if (!a.bias) {
    a.output_bias = false;
    return;
  }
  tensors[b + "b_K"] = at::zeros({a.heads * a.d_qk}, at::kDouble);
  tensors[b + "b_V"] = at::zeros({a.heads * D}, at::kDouble);
  tensors[b + "b_O"] = at::zeros({D}, at::kDouble);
}

}  // namespace

TrainedModel::TrainedModel(const TrialSpec& trial, const std::vector<float>& parameters,
                           const TokenSet* words)
    : spec_(trial.network) {
  const c10::NoGradGuard no_grad;
  const Layout layout(trial.network);
  for (const Slot& slot : layout.slots())
    tensors_[slot.parameter.name] =
        at::tensor(at::ArrayRef<float>(parameters.data() + slot.offset,
                                       static_cast<size_t>(element_count(slot.parameter))),
                   at::kFloat)
            .to(at::kDouble)
            .view(slot.parameter.shape);
  const bool apart = asks_separately(trial.network);
  const EmbeddingSpec embedding = apart ? trial.network.sources.front().embedding : trial.network.embedding;
  const Tensor points = embedding.points > 0 ? points_of(trial, words) : Tensor();
  if (apart) one_stream(spec_, tensors_);
  for (BlockSpec& block : spec_.blocks)
    for (BranchSpec& branch : block.branches)
      fold_modules(branch, fmt::format("blocks.{}.", block.weights), tensors_);
  spec_.embedding =
      Folding(embedding, spec_.width, apart ? kPoints + ".embed." : "embed.", tensors_).fold(points);
  spec_.position = spec_.embedding.positions > 0 ? PositionKind::learned : PositionKind::none;
  spec_.init = {};
}

Weights TrainedModel::load(const std::string& part) {
  Weights w;
  for (const Parameter& p : parameters_of(spec_, part))
    if (!is_vocabulary_table(p.name)) w.set(p.name.substr(part.size() + 1), tensors_.at(p.name));
  return w;
}

Tensor TrainedModel::rows(const std::string& parameter, const Tensor& indices) {
  return tensors_.at(parameter).index_select(0, indices);
}

Tensor TrainedModel::row_range(const std::string& parameter, int64_t first, int64_t count) {
  return tensors_.at(parameter).narrow(0, first, count);
}

void TrainedModel::write(const std::string& task, const std::filesystem::path& folder) const {
  const Json config{{"model_type", "rankscope"}, {"task", task}, {"spec", to_json(spec_)}};
  std::filesystem::create_directories(folder);
  std::vector<Tensor> kept;
  std::vector<TensorToWrite> list;
  for (const auto& [name, value] : tensors_) {
    const Tensor& t = kept.emplace_back(value.to(at::kFloat).contiguous());
    list.push_back({name, StoredType::f32, t.sizes().vec(),
                    std::as_bytes(std::span(t.data_ptr<float>(), static_cast<size_t>(t.numel())))});
  }
  write_safetensors(folder / "model.safetensors", list);
  write_file(folder / "config.json", config.dump(2) + "\n");
}

std::vector<Sample> samples_of(const TokenSet& set) {
  std::vector<Sample> out(static_cast<size_t>(set.sequences()));
  for (int64_t s = 0; s < set.sequences(); ++s) {
    std::vector<int64_t>& ids = out[static_cast<size_t>(s)].ids;
    ids.resize(static_cast<size_t>(set.length(s)));
    if (set.ids.empty())
      std::iota(ids.begin(), ids.end(), s * set.tokens);
    else
      std::copy_n(set.ids.begin() + s * set.tokens, ids.size(), ids.begin());
  }
  return out;
}

}  // namespace rankscope
