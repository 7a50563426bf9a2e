// What a gate does to what can be known of the weights, and to the operators of a head: the sheet on gated
// attention as a mixture of experts, (d). The gates are those of Qiu et al. 2025; the table of nullities is
// ours.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "attention/patterns.h"
#include "model/block.h"
#include "parts/program.h"

namespace rankscope::test {
namespace {

struct Gate {
  const char* name;
  int place;  // 0: none
  bool by_head;
};

// One attention without norm and skip, biases nowhere.
struct Layer {
  Layer(const Gate& gate, int64_t d, int64_t d_k, int64_t d_v) {
    BranchSpec b;
    b.name = "attn";
    b.norm_name = "ln1";
    b.skip = false;
    AttentionSpec a;
    a.heads = a.kv_heads = 2;
    a.d_qk = d_k;
    a.d_v = d_v;
    a.bias = a.output_bias = false;
    b.part = {.name = gate.place == 0 ? "attention" : "gated_attention", .words = a};
    if (gate.place > 0) b.part.options["bias"] = 0;  // only what differs from the default is written
    if (gate.place > 1) b.part.options["place"] = gate.place;
    if (gate.by_head) b.part.options["by_head"] = 1;
    block.branches = {b};
    for (const Parameter& p : program_of(b, d).parameters) {
      parameters.push_back(at::randn(p.shape, at::kDouble).requires_grad_(true));
      weights.set(p.name, parameters.back());
    }
  }

  at::Tensor operator()(const at::Tensor& x, const Batch& batch) const {
    BlockObserver nobody;
    const BlockPlan plan(block, x.size(1));
    BlockContext context{plan, weights, batch, nobody};
    context.differentiated = true;
    return run_block(x, context);
  }

  BlockSpec block;
  Weights weights;
  std::vector<at::Tensor> parameters;
};

// One sample of n tokens.
Batch one_sample(int64_t n) {
  Batch b;
  b.offsets = {0, n};
  b.samples = {0};
  b.content.assign(static_cast<size_t>(n), 1);
  b.positions.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) b.positions[static_cast<size_t>(i)] = i;
  return b;
}

// How many directions in the space of weights change nothing, at any of these inputs: singular values of the
// Jacobian that are zero beside the next.
int64_t nullity(const Gate& gate, int64_t d, int64_t d_k, int64_t d_v) {
  at::manual_seed(7);
  const Layer layer(gate, d, d_k, d_v);
  const Batch batch = one_sample(4);
  std::vector<at::Tensor> rows;
  for (int input = 0; input < 12; ++input) {
    const at::Tensor y = layer(at::randn({4, d}, at::kDouble), batch).flatten();
    for (int64_t i = 0; i < y.size(0); ++i) {
      std::vector<at::Tensor> parts;
      for (const at::Tensor& g : torch::autograd::grad({y[i]}, layer.parameters, {}, true))
        parts.push_back(g.flatten());
      rows.push_back(at::cat(parts));
    }
  }
  const at::Tensor s = at::linalg_svdvals(at::stack(rows));
  const double top = s[0].item<double>();
  int64_t nulls = 0;
  while (nulls < s.size(0) && s[s.size(0) - 1 - nulls].item<double>() < 1e-11 * top) ++nulls;
  EXPECT_GT(s[s.size(0) - 1 - nulls].item<double>(), 1e6 * s[s.size(0) - nulls].item<double>())
      << gate.name << ": no gap";
  return nulls;
}

TEST(Gates, LeaveOfTheSymmetriesOfTheWeightsWhatTheTableSays) {
  // Without a gate W_V M and M^-1 W_O are the same for any M, and so for queries and keys. A gate a channel
  // between the two leaves scalings of channels; a gate a head, or behind W_O, leaves all.
  constexpr Gate kGates[] = {{"none", 0, false}, {"G1", 1, false}, {"G1 by head", 1, true}, {"G2", 2, false},
                             {"G3", 3, false},   {"G4", 4, false}, {"G5", 5, false}};
  constexpr int64_t kSmall[] = {16, 12, 16, 12, 12, 12, 16}, kWide[] = {26, 14, 26, 14, 22, 22, 26};
  constexpr int64_t H = 2;
  for (size_t i = 0; i < std::size(kGates); ++i) {
    const Gate& g = kGates[i];
    const bool v = !g.by_head && (g.place == 1 || g.place == 2), qk = g.place == 3 || g.place == 4;
    for (const auto& [d, d_k, d_v, listed] :
         {std::tuple<int64_t, int64_t, int64_t, int64_t>{5, 2, 2, kSmall[i]}, {7, 2, 3, kWide[i]}}) {
      EXPECT_EQ(nullity(g, d, d_k, d_v), listed) << g.name << ", d = " << d;
      EXPECT_EQ(H * ((v ? d_v : d_v * d_v) + (qk ? d_k : d_k * d_k)), listed) << g.name;
    }
  }
}

// Every number of the output is a mixture of experts on three levels: heads, tokens by softmax, and channels,
// whose expert is linear in a token, or with a gate on values is not. Sums over single numbers.
TEST(Gates, AttentionIsAMixtureOfExpertsOnThreeLevels) {
  constexpr int64_t N = 4, d = 5, H = 2, d_k = 2, d_v = 2;
  for (const Gate& gate : {Gate{"none", 0, false}, Gate{"G1", 1, false}, Gate{"G2", 2, false}}) {
    at::manual_seed(11);
    const Layer layer(gate, d, d_k, d_v);
    const at::Tensor x = at::randn({N, d}, at::kDouble), y = layer(x, one_sample(N)).detach();
    const auto row_times = [&](const char* name, int64_t row, int64_t token) {
      return (layer.weights.get(name)[row] * x[token]).sum().item<double>();
    };
    const auto opens = [&](int64_t row, int64_t token) {
      return gate.place == 0 ? 1.0 : 1 / (1 + std::exp(-row_times("attn.W_G", row, token)));
    };
    for (int64_t i = 0; i < N; ++i) {
      std::vector<double> sum(d, 0.0);
      for (int64_t h = 0; h < H; ++h) {
        std::vector<double> share(N);
        double all = 0;
        for (int64_t n = 0; n < N; ++n) {
          double score = 0;
          for (int64_t c = h * d_k; c < (h + 1) * d_k; ++c)
            score += row_times("attn.W_Q", c, i) * row_times("attn.W_K", c, n);
          all += share[static_cast<size_t>(n)] = std::exp(score);
        }
        for (int64_t n = 0; n < N; ++n)
          for (int64_t k = h * d_v; k < (h + 1) * d_v; ++k) {
            const double expert = opens(k, gate.place == 1 ? i : n) * row_times("attn.W_V", k, n);
            for (int64_t j = 0; j < d; ++j)
              sum[static_cast<size_t>(j)] += share[static_cast<size_t>(n)] / all * expert *
                                             layer.weights.get("attn.W_O")[j][k].item<double>();
          }
      }
      for (int64_t j = 0; j < d; ++j)
        EXPECT_NEAR(y[i][j].item<double>(), sum[static_cast<size_t>(j)], 1e-12) << gate.name;
    }
  }
}

// W_V diag(gate of a token) W_O, token by token: without a gate they are one matrix, with one a channel they
// span as many as the head is wide.
TEST(Gates, AGateAChannelLetsEveryTokenHaveAnOperatorOfItsOwn) {
  at::manual_seed(9);
  const int64_t N = 6, d = 5, d_v = 3;
  const at::Tensor W_V = normals(d, d_v), W_O = normals(d_v, d), x = normals(N, d), W_G = normals(d_v, d);
  const at::Tensor by_channel = at::sigmoid(at::matmul(x, W_G.t())),
                   by_head = at::sigmoid(at::matmul(x, W_G[0])).unsqueeze(1);
  const auto span = [&](const at::Tensor& gate) {
    std::vector<at::Tensor> operators;
    for (int64_t i = 0; i < N; ++i) operators.push_back(at::matmul(W_V * gate[i], W_O).flatten());
    return rank_of(at::stack(operators), 1e-10);
  };
  EXPECT_EQ(span(at::ones({N, 1}, at::kDouble)), 1);
  EXPECT_EQ(span(by_head), 1);
  EXPECT_EQ(span(by_channel), std::min(N, d_v));
}

}  // namespace
}  // namespace rankscope::test
