#include "pass/report_sample.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "attention/variant.h"
#include "lenses/support/host.h"
#include "model/block.h"
#include "pass/pooled_rows.h"

namespace rankscope {
namespace {

constexpr int64_t kAllCells = 1'500'000;  // of all maps together: one byte each in the page
constexpr int64_t kNarrowestMap = 16;

// The matrices of the layers chosen, in the order in which they come. Attention that is no shares comes as
// another site.
std::vector<TensorToWrite> matrices_of(const ModelSpec& spec, int64_t length, int64_t keys,
                                       const std::vector<bool>& layers) {
  std::vector<TensorToWrite> out;
  for (size_t l = 0; l < layers.size(); ++l)
    for (const BranchSpec& b : spec.blocks[l].branches) {
      const AttentionSpec* a = layers[l] ? b.attention() : nullptr;
      if (a == nullptr || !attention_variant(a->variant).shares) continue;
      out.push_back({fmt::format("blocks.{}.{}.hook_pattern", l, b.name),
                     StoredType::f32,
                     {a->heads, length, b.reads.empty() ? length : keys},
                     {}});
    }
  return out;
}

int64_t heads_of(const std::vector<TensorToWrite>& matrices) {
  int64_t heads = 0;
  for (const TensorToWrite& m : matrices) heads += m.shape.front();
  return heads;
}

// The array of that name, made of zeros when the first tile comes.
NamedArray& array_of(std::vector<NamedArray>& arrays, const std::string& name, std::vector<int64_t> shape) {
  const auto it =
      std::find_if(arrays.begin(), arrays.end(), [&](const NamedArray& a) { return a.name == name; });
  if (it != arrays.end()) return *it;
  int64_t size = 1;
  for (const int64_t n : shape) size *= n;
  arrays.push_back({name, std::move(shape), std::vector<float>(static_cast<size_t>(size))});
  return arrays.back();
}

void write_exact(SafetensorsWriter& file, const at::Tensor& p) {
  const at::Tensor values = p.to(at::kFloat).contiguous();
  file.write({reinterpret_cast<const std::byte*>(values.data_ptr<float>()),
              static_cast<size_t>(values.numel()) * sizeof(float)});
}

// Adds rows of one head to its map (mean over queries, sum over keys, so that its rows still sum to one) and
// to what each key gets (mean over the queries that may see it).
void add_rows(const double* rows, int64_t first, int64_t count, const Mask& mask, const MapSides& sides,
              float* map, float* received) {
  const int64_t T = mask.length, Q = mask.queries;
  const auto begins = [&](int64_t b) { return b * Q / sides.queries; };
  // The last b with begins(b) <= i.
  const auto bin = [](int64_t i, int64_t side, int64_t length) { return ((i + 1) * side - 1) / length; };
  for (int64_t i = first; i < first + count; ++i) {
    const int64_t b = bin(i, sides.queries, Q);
    const double share = 1.0 / static_cast<double>(begins(b + 1) - begins(b));
    const double* row = rows + (i - first) * T;
    for (int64_t j = 0; j < T; ++j) {
      map[b * sides.keys + bin(j, sides.keys, T)] += static_cast<float>(row[j] * share);
      received[j] +=
          static_cast<float>(row[j] / static_cast<double>(mask.end_query(j) - mask.first_query(j)));
    }
  }
}

}  // namespace

int64_t map_side(int64_t length, int64_t heads) {
  const auto room =
      static_cast<int64_t>(std::sqrt(static_cast<double>(kAllCells / std::max<int64_t>(heads, 1))));
  return std::min(length, std::clamp(room, kNarrowestMap, ReportSample::kWidestMap));
}

ReportSample::ReportSample(const ModelSpec& spec, int64_t length, int64_t keys,
                           const std::vector<bool>& layers, const std::optional<std::filesystem::path>& file,
                           std::vector<std::string>& notes) {
  std::vector<TensorToWrite> matrices = matrices_of(spec, length, keys, layers);
  heads_ = heads_of(matrices);
  if (!file) return;
  int64_t bytes = 0;
  for (const TensorToWrite& m : matrices)
    bytes += m.shape[0] * m.shape[1] * m.shape[2] * static_cast<int64_t>(sizeof(float));
  if (std::max(length, keys) > kWholePattern || bytes > kMostExact) {
    notes.push_back(fmt::format(
        "the exact attention of sample {} is not kept: {} tokens, {} MB (kept up to {} tokens, {} MB)",
        kShownSample, std::max(length, keys), bytes >> 20, kWholePattern, kMostExact >> 20));
    return;
  }
  promised_ = std::move(matrices);
  file_ = *file;
  restart();
}

void ReportSample::restart() {
  arrays_.clear();
  exact_.reset();
  if (!promised_.empty()) exact_ = std::make_unique<SafetensorsWriter>(file_, promised_);
}

void ReportSample::pattern(const std::string& site, const TileView& view, Crossing& crossing) {
  const auto& numbers = view.packing.samples;
  const Mask mask{view.tile.size(3), view.causal, view.window, view.place.queries};
  for (int64_t s = 0; s < view.tile.size(0); ++s) {
    if (numbers[static_cast<size_t>(view.place.first_sample + s)] != kShownSample) continue;
    if (crossing.late(view.tile))
      pattern_on_device(site, view.tile[s], view.place.first_row, mask, crossing);
    else
      pattern_on_host(site, view.tile[s].contiguous(), view.place.first_row, mask);
  }
}

void ReportSample::pattern_on_host(const std::string& site, const at::Tensor& p, int64_t first_row,
                                   const Mask& mask) {
  const int64_t heads = p.size(0), rows = p.size(1), T = mask.length;
  const MapSides side{map_side(mask.queries, heads_), map_side(T, heads_)};
  const int64_t cells = side.queries * side.keys;
  float* map = array_of(arrays_, site + ".pooled", {heads, side.queries, side.keys}).values.data();
  float* received = array_of(arrays_, site + ".received", {heads, T}).values.data();
  std::vector<double> one(static_cast<size_t>(rows * T));
  for (int64_t h = 0; h < heads; ++h) {
    load(p, h * rows * T, rows * T, one.data());
    add_rows(one.data(), first_row, rows, mask, side, map + h * cells, received + h * T);
  }
  if (exact_) write_exact(*exact_, p);
}

// The same sums made on the device; only they cross, and the matrix itself where a file asks for it.
void ReportSample::pattern_on_device(const std::string& site, const at::Tensor& p, int64_t first_row,
                                     const Mask& mask, Crossing& crossing) {
  const PooledRows pooled =
      pooled_rows(p, first_row, mask, {map_side(mask.queries, heads_), map_side(mask.length, heads_)});
  const auto add_to = [&](const char* what, const at::Tensor& sums) {
    crossing.add(sums, [this, name = site + what, shape = sums.sizes().vec()](const double* values) {
      for (float& total : array_of(arrays_, name, shape).values) total += static_cast<float>(*values++);
    });
  };
  add_to(".pooled", pooled.map);
  add_to(".received", pooled.received);
  if (exact_)
    crossing.add(p, [this, shape = p.sizes().vec()](const double* values) {
      write_exact(*exact_, at::from_blob(const_cast<double*>(values), shape, at::kDouble));
    });
}

std::vector<NamedArray> ReportSample::finish(const std::string& prefix) {
  if (exact_) exact_->commit();
  for (NamedArray& a : arrays_) a.name = prefix + a.name;
  return std::move(arrays_);
}

}  // namespace rankscope
