// Path sums against every path written out, one by one.
#include "operator/paths.h"

#include <gtest/gtest.h>

#include <map>

#include "operator/dense_reference.h"

namespace rankscope {
namespace {

using namespace test;

using Counts = std::vector<int64_t>;  // attentions, mlps, norms

// Every path of the chain, choice by choice: skip or branch, and inside the branch one head.
class Enumeration {
 public:
  Enumeration(const AffineChain& chain, const Grading& grading) : steps_(chain.steps()), grading_(grading) {}

  std::map<Counts, at::Tensor> sums;                       // by how many of each
  std::map<std::pair<int, int64_t>, at::Tensor> by_layer;  // through a layer, by length
  std::map<std::pair<int, int>, at::Tensor> by_head;
  int64_t paths = 0;

  void walk(const at::Tensor& z) { step(0, z, {0, 0, 0}, {}); }

 private:
  using Route = std::vector<std::pair<int, int>>;  // (layer, head)

  template <class Map, class Key>
  static void add(Map& map, const Key& key, const at::Tensor& z) {
    auto [it, fresh] = map.emplace(key, z);
    if (!fresh) it->second = it->second + z;
  }

  void step(size_t s, const at::Tensor& z, const Counts& counts, const Route& route) {
    if (s == steps_.size()) {
      ++paths;
      add(sums, counts, z);
      for (const auto& head : route) {
        add(by_layer, std::pair(head.first, counts[0]), z);
        add(by_head, head, z);
      }
      return;
    }
    if (steps_[s].skip) {
      const bool counted = steps_[s].branches[0].back().kind == PartKind::attention ||
                           (grading_.mlp && steps_[s].branches[0].back().kind == PartKind::mlp);
      if (!counted) return element(s, 0, z, z, counts, route, true);  // the MLP goes with its skip
      step(s + 1, z, counts, route);
    }
    element(s, 0, z, z, counts, route, false);
  }

  void element(size_t s, size_t e, const at::Tensor& z, const at::Tensor& start, const Counts& counts,
               const Route& route, bool with_skip) {
    if (e == steps_[s].branches[0].size()) return step(s + 1, with_skip ? z + start : z, counts, route);
    const Element& part = steps_[s].branches[0][e];
    const auto applied = [&] { return part.part->apply(z.unsqueeze(0)).squeeze(0); };
    Counts more = counts;
    if (part.kind == PartKind::attention) {
      ++more[0];
      const at::Tensor heads =
          static_cast<const FrozenProgram&>(*part.part).apply_heads(z.unsqueeze(0)).squeeze(1);
      for (int h = 0; h < static_cast<int>(heads.size(0)); ++h) {
        Route longer = route;
        longer.emplace_back(part.layer, h);
        element(s, e + 1, heads[h], start, more, longer, with_skip);
      }
    } else if (part.kind == PartKind::norm && grading_.norm) {
      element(s, e + 1, z, start, counts, route, with_skip);
      ++more[2];
      element(s, e + 1, applied() - z, start, more, route, with_skip);
    } else {
      if (part.kind == PartKind::mlp && grading_.mlp) ++more[1];
      element(s, e + 1, applied(), start, more, route, with_skip);
    }
  }

  const std::vector<FrozenStep>& steps_;
  Grading grading_;
};

struct PathCase {
  NormPlace place;
  const char* off;
  Grading grading;
};

class PathSums : public testing::TestWithParam<PathCase> {
 protected:
  static Tiny small(const PathCase& c) {
    return Tiny(c.place, c.off, [&](ModelSpec& s) {
      s = tiny_spec(c.place, c.grading.norm ? 2 : 3);
      for (BlockSpec& b : s.blocks) b.attention().kv_heads = 2;
    });
  }
};

TEST_P(PathSums, EqualEveryPathWrittenOut) {
  const PathCase c = GetParam();
  const Tiny m = small(c);
  const FrozenNetwork frozen = m.freeze();
  const at::Tensor sums = path_sums(frozen.trunk(), frozen.input(), c.grading);
  Enumeration all(frozen.trunk(), c.grading);
  all.walk(frozen.input());
  const double scale = sums.abs().max().item<double>();
  int64_t seen = 0;
  for (int64_t a = 0; a < sums.size(0); ++a)
    for (int64_t mlp = 0; mlp < sums.size(1); ++mlp)
      for (int64_t n = 0; n < sums.size(2); ++n) {
        const auto it = all.sums.find({a, mlp, n});
        const at::Tensor expected =
            it == all.sums.end() ? at::zeros_like(frozen.input()) : (++seen, it->second);
        EXPECT_LE((sums[a][mlp][n] - expected).abs().max().item<double>(), 1e-12 * scale)
            << a << " " << mlp << " " << n;
      }
  EXPECT_EQ(seen, static_cast<int64_t>(all.sums.size()));
}

TEST_P(PathSums, WithTheBiasGiveTheOutput) {
  const PathCase c = GetParam();
  const Tiny m = small(c);
  const FrozenNetwork frozen = m.freeze();
  const at::Tensor sums = path_sums(frozen.trunk(), frozen.input(), c.grading);
  EXPECT_LE(distance(sums.sum({0, 1, 2}) + frozen.bias(), network_output(m.spec, *m.source, m.batch)), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Graded, PathSums,
                         testing::Values(PathCase{NormPlace::post, "", {}}, PathCase{NormPlace::pre, "", {}},
                                         PathCase{NormPlace::post, "", {.mlp = true}},
                                         PathCase{NormPlace::pre, "", {.mlp = true}},
                                         PathCase{NormPlace::post, "mlp", {.norm = true}},
                                         PathCase{NormPlace::pre, "", {.mlp = true, .norm = true}},
                                         PathCase{NormPlace::post, "", {.mlp = true, .norm = true}},
                                         PathCase{NormPlace::post, "mlp-skip", {.mlp = true}},
                                         PathCase{NormPlace::post, "mlp+norm", {}},
                                         PathCase{NormPlace::pre, "attention-skip", {}}));

TEST(Paths, ThereAreAsManyAsTheBinomialSays) {
  const Tiny m(NormPlace::post, "mlp");
  const FrozenNetwork frozen = m.freeze();
  Enumeration all(frozen.trunk(), {});
  all.walk(frozen.input());
  EXPECT_EQ(all.paths, 5 * 5 * 5);  // (1 + H)^L
}

TEST(Paths, LayerMarginalsEqualThePathsThroughTheLayer) {
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    const Tiny m(place);
    const FrozenNetwork frozen = m.freeze();
    Enumeration all(frozen.trunk(), {});
    all.walk(frozen.input());
    const at::Tensor marginals = layer_marginals(frozen.trunk(), frozen.input());
    const at::Tensor sums = path_sums(frozen.trunk(), frozen.input());
    ASSERT_EQ(marginals.size(0), 3);
    ASSERT_EQ(marginals.size(1), 4);
    const double scale = marginals.abs().max().item<double>();
    for (int l = 0; l < 3; ++l)
      for (int64_t k = 1; k <= 3; ++k)
        EXPECT_LE((marginals[l][k] - all.by_layer.at({l, k})).abs().max().item<double>(), 1e-12 * scale);
    // A path of length k goes through k layers.
    for (int64_t k = 0; k <= 3; ++k)
      EXPECT_LE((marginals.sum(0)[k] - static_cast<double>(k) * sums[k][0][0]).abs().max().item<double>(),
                1e-12 * scale);
  }
}

TEST(Paths, HeadMarginalsEqualThePathsThroughTheHead) {
  for (const NormPlace place : {NormPlace::pre, NormPlace::post}) {
    const Tiny m(place);
    const FrozenNetwork frozen = m.freeze();
    Enumeration all(frozen.trunk(), {});
    all.walk(frozen.input());
    std::vector<std::pair<int, int>> which;
    const at::Tensor heads = head_marginals(frozen.trunk(), frozen.input(), which);
    ASSERT_EQ(which.size(), 12u);
    const double scale = heads.abs().max().item<double>();
    for (size_t i = 0; i < which.size(); ++i)
      EXPECT_LE((heads[static_cast<int64_t>(i)] - all.by_head.at(which[i])).abs().max().item<double>(),
                1e-12 * scale);
    const at::Tensor layers = layer_marginals(frozen.trunk(), frozen.input()).sum(1);
    EXPECT_LE((heads.view({3, 4, heads.size(1), heads.size(2)}).sum(1) - layers).abs().max().item<double>(),
              1e-12 * scale);
  }
}

TEST(Paths, ASampleGivesTheSameSumsAloneAndInCompany) {
  const Tiny both(NormPlace::post, "", {}, {5, 3});
  const FrozenNetwork together = both.freeze();
  const at::Tensor sums = path_sums(together.trunk(), together.input());
  Tiny alone(NormPlace::post, "", {}, {5, 3});
  const std::vector<Sample> samples = random_samples({5, 3}, alone.spec.embedding.vocabulary);
  for (size_t s = 0; s < 2; ++s) {
    alone.batch = make_batches({samples[s]}, alone.spec, 8).front();
    const FrozenNetwork frozen = alone.freeze();
    // Batches are sorted by length: the shorter sample comes first.
    const at::Tensor ours = s == 0 ? sums.narrow(3, 3, 5) : sums.narrow(3, 0, 3);
    EXPECT_LE(distance(ours, path_sums(frozen.trunk(), frozen.input())), 1e-12);
  }
}

}  // namespace
}  // namespace rankscope
