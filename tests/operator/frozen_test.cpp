// The frozen operator against the network it was frozen from, for every architecture.
#include "operator/frozen.h"

#include <gtest/gtest.h>

#include "operator/dense_reference.h"
#include "support/rounding.h"

namespace rankscope {
namespace {

using namespace test;

class EveryFixture : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (has_several_streams(GetParam())) GTEST_SKIP() << "networks of several streams are refused, see below";
  }
  // Relative to the largest entry, over every sample at once. No tolerance: that of float32.
  void check(const char* dtype, double tolerance = 0) {
    const Loaded m = load(GetParam(), dtype);
    if (tolerance == 0) tolerance = forward_error(m.spec.depth(), m.spec.width);
    const FrozenNetwork frozen(m.spec, *m.source, m.batch);
    const at::Tensor y = network_output(m.spec, *m.source, m.batch);
    EXPECT_LE(distance(frozen.output(), y), tolerance);
    EXPECT_LE(distance(frozen.trunk().affine(frozen.input()), y), tolerance);
    EXPECT_LE(distance(frozen.trunk().apply(frozen.input()) + frozen.bias(), y), tolerance);
    // The operator is not the network without its biases: leaving b out must show.
    if (frozen.bias().abs().max().item<double>() > 0) {
      EXPECT_GT(distance(frozen.trunk().apply(frozen.input()), y), 100 * tolerance);
    }
  }
};

TEST_P(EveryFixture, OperatorAndBiasGiveTheNetworksOutputInFloat64) { check("float64", 1e-10); }
TEST_P(EveryFixture, OperatorAndBiasGiveTheNetworksOutputInFloat32) { check("float32"); }

TEST(Frozen, ANetworkOfSeveralStreamsIsRefusedByName) {
  int refused = 0;
  for (const std::string& fixture : model_fixtures()) {
    if (!has_several_streams(fixture)) continue;
    ++refused;
    const Loaded m = load(fixture, "float64");
    EXPECT_THROW(FrozenNetwork(m.spec, *m.source, m.batch), Error) << fixture;
  }
  EXPECT_GT(refused, 0);
}

TEST_P(EveryFixture, ContributionsOfInputTokensAndBiasSumToEachLogit) {
  const Loaded m = load(GetParam(), "float64");
  if (m.spec.output.kind == HeadKind::none) GTEST_SKIP() << "this model has no head over a vocabulary";
  const FrozenNetwork frozen(m.spec, *m.source, m.batch);
  const Weights unembed = m.source->load("unembed");
  const at::Tensor W_U = m.source->row_range("unembed.W_U", 0, m.spec.output.vocabulary);
  const at::Tensor& b_U = unembed.get_or_none("b_U");
  const at::Tensor logits =
      at::linear(before_vocabulary(network_output(m.spec, *m.source, m.batch), m.spec, unembed), W_U, b_U);
  const double scale = logits.abs().max().item<double>();
  for (const int64_t token : {int64_t{0}, m.batch.tokens() - 1})
    for (const int64_t word : {int64_t{0}, m.spec.output.vocabulary / 2, m.spec.output.vocabulary - 1}) {
      at::Tensor u = at::zeros_like(frozen.head_output());
      u[token] = W_U[word];
      const at::Tensor row = frozen.trunk().adjoint(frozen.head().adjoint(u));
      double sum = (row * frozen.input()).sum(1).sum().item<double>();
      sum += (frozen.head_bias()[token] * W_U[word]).sum().item<double>();
      if (b_U.defined()) sum += b_U[word].item<double>();
      EXPECT_NEAR(sum, logits[token][word].item<double>(), 1e-10 * scale) << token << " " << word;
    }
}

TEST_P(EveryFixture, AdjointIsTheAdjoint) {
  const Loaded m = load(GetParam(), "float64");
  const FrozenNetwork frozen(m.spec, *m.source, m.batch);
  const AffineChain whole = frozen.trunk().then(frozen.head());
  at::manual_seed(5);
  const at::Tensor x = at::randn({3, m.batch.tokens(), m.spec.width}, at::kDouble);
  const at::Tensor Tx = whole.apply(x);
  const at::Tensor y = at::randn_like(Tx);
  const double left = (y * Tx).sum().item<double>(), right = (whole.adjoint(y) * x).sum().item<double>();
  EXPECT_NEAR(left, right, 1e-11 * y.norm().item<double>() * Tx.norm().item<double>());
}

TEST_P(EveryFixture, StreamsSideBySideAreStreamsAlone) {
  const Loaded m = load(GetParam(), "float64");
  const FrozenNetwork frozen(m.spec, *m.source, m.batch);
  at::manual_seed(6);
  const at::Tensor x = at::randn({4, m.batch.tokens(), m.spec.width}, at::kDouble);
  const at::Tensor together = frozen.trunk().affine(x);
  for (int64_t k = 0; k < 4; ++k) EXPECT_LE(distance(together[k], frozen.trunk().affine(x[k])), 1e-13);
}

INSTANTIATE_TEST_SUITE_P(Frozen, EveryFixture, testing::ValuesIn(model_fixtures()), fixture_name);

TEST(Frozen, DenseRowsEqualRowSlices) {
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    const Tiny m(place);
    const FrozenNetwork frozen = m.freeze();
    const at::Tensor T = dense(frozen.trunk(), m.batch.tokens(), m.spec.width);  // [N d, N d]
    for (const int64_t token : {0, 4})
      for (const int64_t channel : {0, 17}) {
        at::Tensor u = at::zeros_like(frozen.output());
        u[token][channel] = 1.0;
        const at::Tensor row = frozen.trunk().adjoint(u).flatten();
        EXPECT_LE((row - T[token * m.spec.width + channel]).abs().max().item<double>(),
                  1e-12 * T.abs().max().item<double>());
      }
  }
}

TEST(Frozen, ACausalOperatorNeverLooksAhead) {
  const Tiny m(NormPlace::pre);
  const FrozenNetwork frozen = m.freeze();
  const int64_t N = m.batch.tokens(), d = m.spec.width;
  const at::Tensor T = dense(frozen.trunk(), N, d).view({N, d, N, d});
  for (int64_t i = 0; i < N; ++i)
    for (int64_t j = i + 1; j < N; ++j)
      EXPECT_EQ(T[i].select(1, j).abs().max().item<double>(), 0.0) << i << " " << j;
}

TEST(Frozen, WithoutMlpAndNormItIsAttentionRollout) {
  // W_O W_V = I for one head of full width: the operator is prod_l (I + P_l), token by token.
  Tiny m(NormPlace::post, "mlp+norm", [](ModelSpec& s) {
    for (BlockSpec& b : s.blocks) {
      b.attention().heads = b.attention().kv_heads = 1;
      b.attention().d_qk = b.attention().d_v = s.width;
    }
  });
  m.source->overwrite = [&](const std::string& name, at::Tensor& t) {
    if (name == "attn.W_V" || name == "attn.W_O") t = at::eye(m.spec.width, at::kDouble);
  };
  const FrozenNetwork frozen = m.freeze();
  const int64_t N = m.batch.tokens();
  at::Tensor rollout = at::eye(N, at::kDouble);
  for (const FrozenStep& step : frozen.trunk().steps()) {
    const auto& attention = dynamic_cast<const FrozenProgram&>(*step.branches[0].back().part);
    rollout = (at::eye(N, at::kDouble) + attention.patterns().front().select(0, 0)).matmul(rollout);
  }
  const at::Tensor T = dense(frozen.trunk(), N, m.spec.width).view({N, m.spec.width, N, m.spec.width});
  for (int64_t c = 0; c < m.spec.width; c += 7)
    EXPECT_LE((T.select(1, c).select(2, c) - rollout).abs().max().item<double>(), 1e-12);
}

TEST(Frozen, AZeroActivationTakesTheSlopeAtZero) {
  Tiny m(NormPlace::post);
  m.source->overwrite = [](const std::string& name, at::Tensor& t) {
    if (name == "mlp.W_in" || name == "mlp.b_in") t = at::zeros_like(t);
  };
  const FrozenNetwork frozen = m.freeze();
  EXPECT_TRUE(at::isfinite(frozen.output()).all().item<bool>());
  EXPECT_LE(distance(frozen.output(), network_output(m.spec, *m.source, m.batch)), 1e-12);
}

// A network of tiny_spec in the most obvious way: each head's W_Q^T W_K, with the biases as one more row and
// column, and its W_O W_V are formed, cut to their best approximations of these ranks (0: not cut), and used.
class CutByHand {
 public:
  CutByHand(int64_t qk, int64_t ov) : qk_(qk), ov_(ov) {}

  at::Tensor output(const Tiny& m) const {
    at::Tensor x = embed(m.batch, m.spec, m.source->load("embed"), *m.source);
    for (const BlockSpec& block : m.spec.blocks) {
      const Weights w = m.source->load("blocks." + std::to_string(block.weights));
      const bool pre = block.branches.front().before.there();
      const auto norm = [&](const at::Tensor& t, const std::string& name) {
        return at::layer_norm(t, {t.size(1)}, w.get(name + ".w"), w.get(name + ".b"), 1e-6);
      };
      const auto mlp = [&](const at::Tensor& t) {
        return at::linear(at::gelu(at::linear(t, w.get("mlp.W_in"), w.get("mlp.b_in"))), w.get("mlp.W_out"),
                          w.get("mlp.b_out"));
      };
      const AttentionSpec& a = block.attention();
      x = pre ? x + attention(norm(x, "ln1"), a, w, "ln1") : norm(x + attention(x, a, w, ""), "ln1");
      x = pre ? x + mlp(norm(x, "ln2")) : norm(x + mlp(x), "ln2");
    }
    if (!m.spec.final_norm.there()) return x;
    const Weights w = m.source->load("ln_final");
    return at::layer_norm(x, {x.size(1)}, w.get("w"), w.get("b"), 1e-6);
  }

 private:
  static at::Tensor best(const at::Tensor& m, int64_t rank) {
    if (rank == 0) return m;
    const auto [U, S, Vh] = at::linalg_svd(m, false);
    return (U.narrow(1, 0, rank) * S.narrow(0, 0, rank)).matmul(Vh.narrow(0, 0, rank));
  }

  // The map is cut as the tokens z meet it that a norm leaves before its gain g and bias s, x = g z + s. What
  // the queries' biases say of each key stays whole; what the keys' biases say, softmax does not see.
  at::Tensor attention(const at::Tensor& x, const AttentionSpec& a, const Weights& w,
                       const std::string& norm) const {
    const int64_t T = x.size(0), d = x.size(1);
    const at::Tensor g = norm.empty() ? at::ones({d}, at::kDouble) : w.get(norm + ".w"),
                     s = norm.empty() ? at::zeros({d}, at::kDouble) : w.get(norm + ".b"), z = (x - s) / g;
    const auto rows = [&](const char* W, const char* b, int64_t head, int64_t width) {
      return at::cat({w.get(W), w.get(b).unsqueeze(1)}, 1).narrow(0, head * width, width);
    };
    at::Tensor out = w.get("attn.b_O").expand({T, d});
    for (int64_t h = 0; h < a.heads; ++h) {
      const int64_t shared = h / (a.heads / a.kv_heads);
      const at::Tensor q = rows("attn.W_Q", "attn.b_Q", h, a.d_qk),
                       k = rows("attn.W_K", "attn.b_K", shared, a.d_qk).narrow(1, 0, d) * g;
      const at::Tensor b_Q = q.select(1, d) + q.narrow(1, 0, d).matmul(s);
      const at::Tensor QK = best((q.narrow(1, 0, d) * g).t().matmul(k), qk_);
      at::Tensor scores = a.scale * (z.matmul(QK).matmul(z.t()) + z.matmul(k.t().matmul(b_Q)));
      if (a.causal) scores = scores.masked_fill(at::ones({T, T}, at::kBool).triu(1), -INFINITY);
      const at::Tensor W_O = w.get("attn.W_O").narrow(1, h * a.d_v, a.d_v),
                       v = rows("attn.W_V", "attn.b_V", shared, a.d_v);
      const at::Tensor OV = best(W_O.matmul(v.narrow(1, 0, d) * g), ov_);
      out = out + at::softmax(scores, 1).matmul(z).matmul(OV.t()) +
            W_O.matmul(v.select(1, d) + v.narrow(1, 0, d).matmul(s));
    }
    return out;
  }

  int64_t qk_, ov_;
};

TEST(Frozen, RanksCutAreFollowed) {
  for (const NormPlace place : {NormPlace::pre, NormPlace::post})
    for (const int64_t kv : {4, 2, 1}) {
      Tiny m(place, "", [kv](ModelSpec& s) {
        for (BlockSpec& b : s.blocks) b.attention().kv_heads = kv;
      });
      const at::Tensor uncut = CutByHand(0, 0).output(m);
      EXPECT_LE(distance(m.freeze().output(), uncut), 1e-12);
      const ModelSpec whole = m.spec;
      for (const auto& [ranks, qk, ov] : {std::tuple{"qk=2", 2, 0}, {"ov=3", 0, 3}, {"qk=2+ov=3", 2, 3}}) {
        const at::Tensor expected = CutByHand(qk, ov).output(m);
        m.spec = with_rank(whole, ranks);
        EXPECT_LE(distance(m.freeze().output(), expected), 1e-12) << ranks << " of " << kv;
        EXPECT_GT(distance(uncut, expected), 1e-3) << ranks << " cuts nothing that shows";
        m.spec = whole;
      }
    }
}

TEST(Frozen, PartsTakenOutAreFollowed) {
  for (const char* off :
       {"skip", "attention-skip", "mlp", "norm", "mlp-skip+norm", "head:L1H2", "position"}) {
    const Tiny m(NormPlace::post, off);
    EXPECT_LE(distance(m.freeze().output(), network_output(m.spec, *m.source, m.batch)), 1e-12) << off;
  }
}

TEST(Frozen, TheUnitNormKeepsItsGain) {
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    const Tiny m(place, "", [place](ModelSpec& s) {
      for (BlockSpec& block : s.blocks)
        for (BranchSpec& b : block.branches)
          (place == NormPlace::pre ? b.before : b.behind).kind = NormKind::unit;
    });
    EXPECT_LE(distance(m.freeze().output(), network_output(m.spec, *m.source, m.batch)), 1e-12);
  }
}

TEST(Frozen, AnOverflowIsNamed) {
  Tiny m(NormPlace::post, "norm");
  m.source->overwrite = [](const std::string& name, at::Tensor& t) {
    if (name == "attn.W_V") t = t * 1e300;
  };
  try {
    m.freeze();
    FAIL() << "an overflow went through";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "the activations hold NaN or Inf");
    EXPECT_NE(e.place().find("blocks."), std::string::npos);
  }
}

}  // namespace
}  // namespace rankscope
