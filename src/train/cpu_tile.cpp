#include "train/cpu_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "kernels/cpu/bias_relu.h"
#include "kernels/cpu/skip_norm.h"
#include "kernels/cpu/small_attention.h"
#include "kernels/cpu/squared_error.h"
#include "ops/fused.h"
#include "ops/gemm.h"
#include "ops/mlp_rows.h"
#include "train/fused_forward.h"
#include "train/layout.h"
#include "train/networks.h"

namespace rankscope {
namespace {

// Every row becomes the bias, for a product to be added to it; without a bias, zeros.
void start_rows(int64_t rows, int64_t width, const float* bias, float* y, int64_t y_row) {
  for (int64_t i = 0; i < rows; ++i)
    bias ? std::copy_n(bias, width, y + i * y_row) : std::fill_n(y + i * y_row, width, 0.0f);
}

void add_rows(int64_t rows, int64_t width, float* dy, int64_t dy_row, float* dbias) {
  if (dbias) bias_relu_backward<float>(rows, width, nullptr, 0, dy, dy_row, dbias);
}

}  // namespace

bool EncoderTile::covers(const TrialSpec& t) {
  const ModelSpec& n = t.network;
  return fused_kernels() && fused_forward_covers(n) && !asks_separately(n) && !n.pre_norm() &&
         n.blocks.front().branches.front().behind.there() && n.blocks.front().mlp_branch() != nullptr &&
         n.embedding.positions == 0 && !n.embedding.point_map && n.output.kind == HeadKind::none &&
         !n.output.last_token && !t.set && t.protocol.dropout == 0;
}

EncoderTile::EncoderTile(const TrialSpec& trial, int64_t sequences) : tokens_(tokens_of(trial)) {
  const ModelSpec& n = trial.network;
  const Layout layout(n);
  const AttentionSpec& a = n.blocks.front().attention();
  const int64_t mlp = n.blocks.front().mlp_branch()->mlp()->width;
  const int64_t rows = sequences * tokens_, D = n.width, v = a.heads * a.d_v;
  const int64_t qkv = 2 * a.heads * a.d_qk + v;
  qkv_row_ = qkv + 16;  // rows a multiple of 2 KiB apart push each other out of the first-level cache
  std::vector<std::pair<float**, int64_t>> wanted;
  kept_.resize(n.blocks.size());
  for (int64_t l = 0; l < n.depth(); ++l) {
    const auto at = [&](const char* name) { return layout.offset_of(fmt::format("blocks.{}.{}", l, name)); };
    offsets_.push_back({at("ln1.w"), at("ln1.b"), at("attn.W_Q"), at("attn.b_Q"), at("attn.W_O"),
                        at("attn.b_O"), at("ln2.w"), at("ln2.b"), at("mlp.W_in"), at("mlp.b_in"),
                        at("mlp.W_out"), at("mlp.b_out")});
    Kept& k = kept_[static_cast<size_t>(l)];
    wanted.insert(wanted.end(), {{&k.qkv, rows * qkv_row_},
                                 {&k.z, rows * v},
                                 {&k.attention, rows * D},
                                 {&k.inverse1, rows},
                                 {&k.u, rows * D},
                                 {&k.hidden, rows * mlp},
                                 {&k.mlp, rows * D},
                                 {&k.inverse2, rows},
                                 {&k.y, rows * D}});
  }
  wanted.insert(wanted.end(), {{&dy_, rows * D},
                               {&dsum_, rows * D},
                               {&dz_, rows * v},
                               {&dqkv_, rows * qkv_row_},
                               {&work_, mlp_workspace(rows, mlp)}});
  constexpr int64_t line = 64 / sizeof(float);
  int64_t total = 0;
  for (auto& [place, size] : wanted) total += (size + line - 1) / line * line;
  constexpr std::align_val_t aligned{64};
  memory_.reset(static_cast<float*>(::operator new(static_cast<size_t>(total) * sizeof(float), aligned)),
                [](float* p) { ::operator delete(p, aligned); });
  float* next = memory_.get();
  for (auto& [place, size] : wanted) {
    *place = next;
    next += (size + line - 1) / line * line;
  }
}

// One call of loss().
struct EncoderTile::Run {
  Run(EncoderTile& tile, const ModelSpec& spec, int64_t count, const float* tokens, const float* parameters,
      float* gradient)
      : t(tile), tokens(tokens), parameters(parameters), gradient(gradient) {
    const AttentionSpec& a = spec.blocks.front().attention();
    rows = count * t.tokens_;
    D = spec.width;
    qk = a.heads * a.d_qk;
    v = a.heads * a.d_v;
    hidden = spec.blocks.front().mlp_branch()->mlp()->width;
    average = 1.0f / static_cast<float>(a.modules);
    heads = static_cast<int32_t>(a.heads);
    scale = static_cast<float>(a.scale);
    attention.sequences = count;
    attention.queries = attention.keys = t.tokens_;
    attention.width_qk = qk;
    attention.width_v = v;
    attention.heads = &heads;
    attention.scale = &scale;
    attention.hard = a.variant == "hard";
    attention.q = attention.k = attention.v = {0, t.qkv_row_};
    attention.out = {0, v};
    const NormKind kind = spec.blocks.front().branches.front().behind.kind;
    norm.kind = kind == NormKind::unit  ? SkipNorm::Kind::unit
                : kind == NormKind::rms ? SkipNorm::Kind::rms
                                        : SkipNorm::Kind::layer;
    norm.rows = rows;
    norm.width = norm.x_row = norm.u_row = norm.y_row = D;
  }
  Run(const Run&) = delete;

  const float* at(int64_t offset) const { return offset < 0 ? nullptr : parameters + offset; }
  float* d(int64_t offset) const { return offset < 0 ? nullptr : gradient + offset; }
  const float* input(size_t l) const { return l == 0 ? tokens : t.kept_[l - 1].y; }

  MlpRows<float> mlp(size_t l) const {
    const Offsets& o = t.offsets_[l];
    return {rows, D, hidden, D, t.kept_[l].u, at(o.W_in), at(o.b_in), at(o.W_out)};
  }

  void forward(size_t l) {
    const Offsets& o = t.offsets_[l];
    const Kept& k = t.kept_[l];
    const float* x = input(l);
    const int64_t qkv = 2 * qk + v;
    start_rows(rows, qkv, at(o.b_QKV), k.qkv, t.qkv_row_);
    gemm(Turn::no, Turn::yes, rows, qkv, D, 1.0f, {x, D}, {at(o.W_QKV), D}, 1.0f, {k.qkv, t.qkv_row_});
    small_attention_forward<float>(attention, k.qkv, k.qkv + qk, k.qkv + 2 * qk, k.z);
    start_rows(rows, D, at(o.b_O), k.attention, D);
    gemm(Turn::no, Turn::yes, rows, D, v, average, {k.z, v}, {at(o.W_O), v}, 1.0f, {k.attention, D});
    skip_norm_forward<float>(norm, x, k.attention, at(o.ln1_w), at(o.ln1_b), k.u, k.inverse1);
    start_rows(rows, D, at(o.b_out), k.mlp, D);
    mlp_forward(mlp(l), k.mlp, k.hidden, t.work_);
    skip_norm_forward<float>(norm, k.u, k.mlp, at(o.ln2_w), at(o.ln2_b), k.y, k.inverse2);
  }

  // From the gradient of the block's output in t.dy_ to that of its input in the same place; the tokens' own
  // is nobody's.
  void backward(size_t l) {
    const Offsets& o = t.offsets_[l];
    const Kept& k = t.kept_[l];
    const float* x = input(l);
    const int64_t qkv = 2 * qk + v;
    skip_norm_backward<float>(norm, k.u, k.mlp, at(o.ln2_w), k.inverse2, t.dy_, D, t.dsum_, D, d(o.ln2_w),
                              d(o.ln2_b));
    add_rows(rows, D, t.dsum_, D, d(o.b_out));
    std::copy_n(t.dsum_, rows * D, t.dy_);
    mlp_backward(mlp(l), k.hidden, t.dsum_, {t.dy_, d(o.W_in), d(o.b_in), d(o.W_out)}, t.work_);
    skip_norm_backward<float>(norm, x, k.attention, at(o.ln1_w), k.inverse1, t.dy_, D, t.dsum_, D, d(o.ln1_w),
                              d(o.ln1_b));
    add_rows(rows, D, t.dsum_, D, d(o.b_O));
    gemm(Turn::yes, Turn::no, D, v, rows, average, {t.dsum_, D}, {k.z, v}, 1.0f, {d(o.W_O), v});
    gemm(Turn::no, Turn::no, rows, v, D, average, {t.dsum_, D}, {at(o.W_O), v}, 0.0f, {t.dz_, v});
    const Rows spread{0, t.qkv_row_};
    small_attention_backward<float>(attention, k.qkv, k.qkv + qk, k.qkv + 2 * qk, t.dz_, {0, v}, t.dqkv_,
                                    spread, t.dqkv_ + qk, spread, t.dqkv_ + 2 * qk, spread);
    add_rows(rows, qkv, t.dqkv_, t.qkv_row_, d(o.b_QKV));
    gemm(Turn::yes, Turn::no, qkv, D, rows, 1.0f, {t.dqkv_, t.qkv_row_}, {x, D}, 1.0f, {d(o.W_QKV), D});
    if (l == 0) return;
    std::copy_n(t.dsum_, rows * D, t.dy_);
    gemm(Turn::no, Turn::no, rows, D, qkv, 1.0f, {t.dqkv_, t.qkv_row_}, {at(o.W_QKV), D}, 1.0f, {t.dy_, D});
  }

  EncoderTile& t;
  const float *tokens, *parameters;
  float* gradient;
  int64_t rows, D, qk, v, hidden;
  float average, scale;
  int32_t heads;
  SmallAttention attention;
  SkipNorm norm;
};

double EncoderTile::loss(const ModelSpec& n, int64_t count, const float* tokens, const float* target,
                         float weight, const float* parameters, float* gradient) {
  Run pass(*this, n, count, tokens, parameters, gradient);
  for (size_t l = 0; l < kept_.size(); ++l) pass.forward(l);
  if (n.output.channels < pass.D) std::fill_n(dy_, pass.rows * pass.D, 0.0f);
  const double loss = squared_error(pass.rows, n.output.channels, weight, kept_.back().y, pass.D, target,
                                    n.output.channels, dy_, pass.D);
  for (size_t l = kept_.size(); l-- > 0;) pass.backward(l);
  return loss;
}

}  // namespace rankscope
