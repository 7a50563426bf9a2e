#include "train/token_model.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace rankscope {
namespace {

using at::Tensor;

constexpr size_t kPlane = 2;

// Sequence s of a padded table with `width` numbers a token, cut to `tokens` tokens.
template <class T>
void append(std::vector<T>& out, const std::vector<T>& table, const TokenSet& set, int64_t s, int64_t tokens,
            size_t width) {
  const auto row = table.begin() + static_cast<int64_t>(width) * s * set.tokens;
  out.insert(out.end(), row, row + static_cast<int64_t>(width) * tokens);
}

}  // namespace

TokenModel::TokenModel(const TokenNetwork& n, const Tensor& flat, const TokenSet& set) {
  const c10::NoGradGuard no_grad;
  const TokenParameters p(n, flat, false);
  TokenBatch all;
  const int64_t points = static_cast<int64_t>(set.points.size() / kPlane);
  if (n.vocabulary > 0)
    all.ids = at::arange(n.vocabulary, at::kLong);
  else
    all.points = at::tensor(set.points, at::kDouble).view({points, 2}).to(flat.scalar_type());
  spec_ = model_spec(n, n.vocabulary > 0 ? n.vocabulary : points);
  int64_t offset = 0;
  for (const Parameter& parameter : token_parameters(n)) {
    const int64_t count = element_count(parameter);
    tensors_[parameter.name] = flat.narrow(0, offset, count).view(parameter.shape);
    offset += count;
  }
  tensors_["embed.W_E"] = token_input(n, p, all);
  if (n.positions > 0) tensors_["embed.W_pos"] = at::linear(p.get("embed.W_pos"), p.get("embed.W_map"));
  for (const char* folded : {"embed.W_in", "embed.b_in", "embed.W_map", "embed.b_map"})
    tensors_.erase(folded);
}

TokenModel::~TokenModel() = default;

Weights TokenModel::load(const std::string& part) {
  Weights w;
  for (const Parameter& p : parameters_of(spec_, part))
    if (!is_vocabulary_table(p.name)) w.set(p.name.substr(part.size() + 1), tensors_.at(p.name));
  return w;
}

Tensor TokenModel::rows(const std::string& parameter, const Tensor& indices) {
  return tensors_.at(parameter).index_select(0, indices);
}

Tensor TokenModel::row_range(const std::string& parameter, int64_t first, int64_t count) {
  return tensors_.at(parameter).narrow(0, first, count);
}

std::vector<Sample> samples_of(const TokenSet& set) {
  std::vector<Sample> out(static_cast<size_t>(set.sequences()));
  for (int64_t s = 0; s < set.sequences(); ++s) {
    std::vector<int64_t>& ids = out[static_cast<size_t>(s)].ids;
    if (set.ids.empty()) {
      ids.resize(static_cast<size_t>(set.length(s)));
      std::iota(ids.begin(), ids.end(), s * set.tokens);
    } else {
      append(ids, set.ids, set, s, set.length(s), 1);
    }
  }
  return out;
}

TokenBatch batch_of(const TokenSet& set, const std::vector<int64_t>& sequences, bool float64) {
  TokenBatch out;
  int64_t longest = 0, shortest = set.tokens;
  for (const int64_t s : sequences) {
    longest = std::max(longest, set.length(s));
    shortest = std::min(shortest, set.length(s));
  }
  const auto count = static_cast<int64_t>(sequences.size());
  std::vector<int64_t> ids;
  std::vector<double> points;
  for (const int64_t s : sequences) {
    if (set.ids.empty())
      append(points, set.points, set, s, longest, kPlane);
    else
      append(ids, set.ids, set, s, longest, 1);
  }
  if (set.ids.empty())
    out.points =
        at::tensor(points, at::kDouble).view({count, longest, 2}).to(float64 ? at::kDouble : at::kFloat);
  else
    out.ids = at::tensor(ids, at::kLong).view({count, longest});
  if (shortest < longest) {
    out.padding = at::zeros({count, longest}, at::kBool);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t length = set.length(sequences[static_cast<size_t>(i)]);
      out.padding[i].narrow(0, length, longest - length).fill_(true);
    }
  }
  return out;
}

void export_token_model(const TokenModel& model, const std::string& task,
                        const std::filesystem::path& folder) {
  const ModelSpec& s = model.spec();
  const BlockSpec& b = s.blocks.front();
  Json c;
  c["model_type"] = "rankscope";
  c["task"] = task;
  c["hidden_size"] = s.width;
  c["vocab_size"] = s.embedding.vocabulary;
  c["positions"] = s.embedding.positions;
  c["embedding_norm"] = to_string(s.embedding.norm.kind);
  c["layers"] = s.depth();
  c["heads"] = b.attention.heads;
  c["rank"] = b.attention.d_qk;
  c["v_rank"] = b.attention.d_v;
  c["score_scale"] = b.attention.scale;
  c["mlp"] = b.mlp.width;
  c["activation"] = to_string(b.mlp.activation);
  c["norm"] = to_string(b.norm.kind);
  c["norm_place"] = to_string(b.norm.place);
  c["norm_epsilon"] = b.norm.epsilon;
  c["attention_skip"] = b.attention_skip;
  c["outputs"] = s.output.vocabulary;
  std::filesystem::create_directories(folder);
  std::vector<Tensor> kept;
  std::vector<TensorToWrite> list;
  for (const auto& [name, value] : model.tensors()) {
    const Tensor& t = kept.emplace_back(value.to(at::kFloat).contiguous());
    list.push_back({name, StoredType::f32, t.sizes().vec(),
                    std::as_bytes(std::span(t.data_ptr<float>(), static_cast<size_t>(t.numel())))});
  }
  write_safetensors(folder / "model.safetensors", list);
  write_file(folder / "config.json", c.dump(2) + "\n");
}

}  // namespace rankscope
