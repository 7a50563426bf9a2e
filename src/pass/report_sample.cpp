#include "pass/report_sample.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lenses/support/host.h"
#include "lenses/support/mask.h"
#include "lenses/support/on_device.h"
#include "model/block.h"

namespace rankscope {
namespace {

constexpr int64_t kAllCells = 1'500'000;  // of all maps together: one byte each in the page
constexpr int64_t kNarrowestMap = 16;

std::string site(int64_t layer) { return fmt::format("blocks.{}.{}", layer, ReportSample::kSite); }

int64_t heads_of(const ModelSpec& spec, const std::vector<bool>& layers) {
  int64_t heads = 0;
  for (size_t l = 0; l < layers.size(); ++l)
    if (layers[l]) heads += spec.blocks[l].attention().heads;
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

// Adds rows of one head to its map (mean over queries, sum over keys, so that its rows still sum to one) and
// to what each key gets (mean over the queries that may see it).
void add_rows(const double* rows, int64_t first, int64_t count, const Mask& mask, int64_t side, float* map,
              float* received) {
  const int64_t T = mask.length;
  const auto begins = [&](int64_t b) { return b * T / side; };
  const auto bin = [&](int64_t i) { return ((i + 1) * side - 1) / T; };  // the last b with begins(b) <= i
  for (int64_t i = first; i < first + count; ++i) {
    const int64_t b = bin(i);
    const double share = 1.0 / static_cast<double>(begins(b + 1) - begins(b));
    const double* row = rows + (i - first) * T;
    for (int64_t j = 0; j < T; ++j) {
      map[b * side + bin(j)] += static_cast<float>(row[j] * share);
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

struct ReportSample::There {
  std::map<int, std::pair<at::Tensor, at::Tensor>> layers;  // map and received of each, on their device
};

ReportSample::ReportSample(const ModelSpec& spec, int64_t length, const std::vector<bool>& layers,
                           const std::optional<std::filesystem::path>& file, std::vector<std::string>& notes)
    : length_(length), side_(map_side(length, heads_of(spec, layers))), there_(std::make_unique<There>()) {
  if (!file) return;
  const int64_t bytes = heads_of(spec, layers) * length * length * static_cast<int64_t>(sizeof(float));
  if (length > kWholePattern || bytes > kMostExact) {
    notes.push_back(fmt::format(
        "the exact attention of sample {} is not kept: {} tokens, {} MB (kept up to {} tokens, {} MB)",
        kShownSample, length, bytes >> 20, kWholePattern, kMostExact >> 20));
    return;
  }
  std::vector<TensorToWrite> tensors;
  for (size_t l = 0; l < layers.size(); ++l)
    if (layers[l])
      tensors.push_back({site(static_cast<int64_t>(l)),
                         StoredType::f32,
                         {spec.blocks[l].attention().heads, length, length},
                         {}});
  exact_ = std::make_unique<SafetensorsWriter>(*file, tensors);
}

void ReportSample::pattern(int layer, const TileView& view) {
  const auto& numbers = view.packing.samples;
  const int64_t samples = view.tile.size(0), heads = view.tile.size(1), rows = view.tile.size(2);
  for (int64_t s = 0; s < samples; ++s) {
    if (numbers[static_cast<size_t>(view.place.first_sample + s)] != kShownSample) continue;
    if (stays_on_device(view.tile)) {
      add_there(layer, view.tile[s], view);
      if (exact_) write_exact(host(view.tile[s]));
      continue;
    }
    const at::Tensor p = host(view.tile[s]);
    const Mask mask{length_, view.causal, view.window};
    float* map = array_of(arrays_, site(layer) + ".pooled", {heads, side_, side_}).values.data();
    float* received = array_of(arrays_, site(layer) + ".received", {heads, length_}).values.data();
    std::vector<double> one(static_cast<size_t>(rows * length_));
    for (int64_t h = 0; h < heads; ++h) {
      load(p, h * rows * length_, rows * length_, one.data());
      add_rows(one.data(), view.place.first_row, rows, mask, side_, map + h * side_ * side_,
               received + h * length_);
    }
    write_exact(p);
  }
}

void ReportSample::write_exact(const at::Tensor& p) {
  if (!exact_) return;
  const at::Tensor values = p.to(at::kFloat).contiguous();
  exact_->write({reinterpret_cast<const std::byte*>(values.data_ptr<float>()),
                 static_cast<size_t>(values.numel()) * sizeof(float)});
}

// As add_rows, by two products: bins of queries (means) times the tile [H, R, T] times bins of keys (sums).
void ReportSample::add_there(int layer, const at::Tensor& tile, const TileView& view) {
  const Mask mask{length_, view.causal, view.window};
  const int64_t rows = tile.size(1), first = view.place.first_row;
  const auto begins = [&](int64_t b) { return b * length_ / side_; };
  std::vector<double> queries(static_cast<size_t>(side_ * rows), 0.0),
      keys(static_cast<size_t>(length_ * side_), 0.0), share(static_cast<size_t>(length_));
  for (int64_t b = 0; b < side_; ++b)
    for (int64_t i = begins(b); i < begins(b + 1); ++i) {
      keys[static_cast<size_t>(i * side_ + b)] = 1;
      if (i >= first && i < first + rows)
        queries[static_cast<size_t>(b * rows + i - first)] =
            1.0 / static_cast<double>(begins(b + 1) - begins(b));
    }
  for (int64_t j = 0; j < length_; ++j)
    share[static_cast<size_t>(j)] = 1.0 / static_cast<double>(mask.end_query(j) - mask.first_query(j));
  const at::Tensor p = tile.detach().to(at::kDouble);
  const auto there = [&](const std::vector<double>& x) { return at::tensor(x, p.options()); };
  const at::Tensor map =
      at::matmul(there(queries).view({side_, rows}), at::matmul(p, there(keys).view({length_, side_})));
  const at::Tensor received = p.sum(1) * there(share);
  auto& [maps, columns] = there_->layers[layer];
  maps = maps.defined() ? maps + map : map;
  columns = columns.defined() ? columns + received : received;
}

ReportSample::~ReportSample() = default;

std::vector<NamedArray> ReportSample::finish() {
  if (exact_) exact_->commit();
  for (const auto& [layer, both] : there_->layers) {
    const auto keep = [&](const std::string& name, const at::Tensor& x) {
      const at::Tensor here = x.to(at::kCPU, at::kFloat).contiguous();
      arrays_.push_back({site(layer) + name,
                         here.sizes().vec(),
                         {here.data_ptr<float>(), here.data_ptr<float>() + here.numel()}});
    };
    keep(".pooled", both.first);
    keep(".received", both.second);
  }
  return std::move(arrays_);
}

}  // namespace rankscope
