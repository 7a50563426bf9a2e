#include "studies/support/train_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "theory/certificate.h"
#include "theory/limits.h"

namespace rankscope {
namespace {

// Independent streams from one number: initialisation and data must not share randomness.
uint64_t derived(uint64_t seed, uint32_t purpose) { return Philox{seed, purpose, 0}.below(UINT64_MAX, 0); }

constexpr uint32_t kInit = 1, kData = 2;
constexpr int64_t kReferenceSeed = 613;  // the reference starts every run from this one

NormKind norm_of(const std::string& name) {
  return name == "unit"    ? NormKind::unit
         : name == "layer" ? NormKind::layer
         : name == "rms"   ? NormKind::rms
                           : NormKind::none;
}

NetworkSpec network_of(const Config& c, const TaskSpec& task) {
  const Task& t = task_named(task.name);
  NetworkSpec n;
  n.encoder = text(c, "model") == "encoder";
  n.token_width = t.token_width(task);
  n.answer_width = t.answer_width(task);
  n.tokens = token_count(task);
  n.layers = integer(c, "layers");
  n.modules = integer(c, "width");
  n.hard = text(c, "attention") == "hard";
  n.mlp = integer(c, "mlp") >= 0 ? integer(c, "mlp") : n.encoder ? 2048 : 0;
  n.norm = norm_of(text(c, "norm"));
  n.place = text(c, "norm_place") == "pre" ? NormPlace::pre : NormPlace::post;
  const std::string& positions = text(c, "positions");
  n.positions = positions == "additive"       ? Positions::additive
                : positions == "concatenated" ? Positions::concatenated
                                              : Positions::none;
  n.position_width = n.positions == Positions::concatenated ? integer(c, "position_dim") : 0;
  n.embed = integer(c, "embed");
  n.bias = flag(c, "bias");
  n.same_init = flag(c, "same_init");
  const int64_t D = n.width(), heads = integer(c, "heads"), rank = integer(c, "rank");
  if (heads > 0 && rank == 0 && D % heads != 0)
    throw usage_error(fmt::format("{} heads do not divide the width {}", heads, D))
        .hint("give rank= too, or other heads");
  n.rank = rank > 0 ? rank : heads > 0 ? D / heads : D;
  n.heads = heads > 0 ? heads : std::max<int64_t>(1, D / n.rank);
  const int64_t v_rank = integer(c, "v_rank");
  n.v_rank = v_rank > 0 ? v_rank : n.encoder ? n.rank : D;
  n.score_scale = 1.0 / std::sqrt(static_cast<double>(text(c, "scale") == "width" ? D : n.rank));
  return n;
}

}  // namespace

std::vector<Key> train_keys() {
  return {
      {"task",
       std::string("farthest"),
       "what is asked",
       0,
       0,
       {"biased", "farthest", "nearest", "regression", "square-wave"}},
      {"data",
       std::string("iid"),
       "law of the points: on the sphere, Haar-orthonormal, or with their negatives",
       0,
       0,
       {"iid", "ortho", "doubled"}},
      {"d", int64_t{64}, "width of a point", 1, 4096},
      {"n", int64_t{16}, "points a sequence", 1, 256},
      {"queries", int64_t{0}, "separate queries a sequence; 0: every point asks", 0, 256},
      {"model",
       std::string("encoder"),
       "a post-norm encoder, or one attention layer with full value maps",
       0,
       0,
       {"encoder", "layer"}},
      {"layers", int64_t{1}, "L", 1, 64},
      {"width", int64_t{1}, "W: independent attention modules, averaged", 1, 4096},
      {"heads", int64_t{0}, "heads a module; 0: width over rank", 0, 65536},
      {"rank", int64_t{0}, "rank of a head's QK map; 0: width over heads", 0, 4096},
      {"v_rank", int64_t{0}, "rank of a head's OV map; 0: as QK (encoder) or full (layer)", 0, 4096},
      {"scale",
       std::string("rank"),
       "scores are divided by the square root of this",
       0,
       0,
       {"rank", "width"}},
      {"attention", std::string("soft"), "softmax, or the largest score takes all", 0, 0, {"soft", "hard"}},
      {"mlp", int64_t{-1}, "hidden width of the MLP; 0: none, -1: 2048 in the encoder, none in the layer", -1,
       65536},
      {"norm", std::string("unit"), "of the residual stream", 0, 0, {"none", "unit", "layer", "rms"}},
      {"norm_place", std::string("post"), "where it stands", 0, 0, {"post", "pre"}},
      {"positions",
       std::string("none"),
       "learned, added or concatenated",
       0,
       0,
       {"none", "additive", "concatenated"}},
      {"position_dim", int64_t{64}, "width of concatenated positions", 1, 4096},
      {"embed", int64_t{0}, "width of a learned map in and out; 0: tokens as they are", 0, 4096},
      {"bias", true, "biases in every linear map"},
      {"same_init", false, "all layers start as copies of the first"},
      {"steps", int64_t{10000}, "updates", 1, 1e9},
      {"batch", int64_t{256}, "sequences a step", 1, 1 << 20},
      {"lr", 0.01, "learning rate at its highest", 0, 1e3},
      {"lr_end", 0.0, "learning rate at the end, as a fraction", 0, 1},
      {"warmup", 0.05, "fraction of the steps with a rising learning rate", 0, 1},
      {"schedule", std::string("cosine"), "after the warm-up", 0, 0, {"cosine", "constant"}},
      {"beta1", 0.9, "AdamW", 0, 1},
      {"beta2", 0.95, "AdamW", 0, 1},
      {"eps", 1e-8, "AdamW", 0, 1},
      {"weight_decay", 0.0, "AdamW", 0, 1e3},
      {"protocol",
       std::string("fresh"),
       "fresh data every step, or the reference's 100 batches again and again",
       0,
       0,
       {"fresh", "reference"}},
      {"seed", int64_t{0}, "of initialisation and data, independently", 0, 1e15},
      {"start",
       std::string("random"),
       "random, or the identity cut into rank-r blocks",
       0,
       0,
       {"random", "identity"}},
      {"start_beta", 100.0, "inverse temperature of start=identity", 0, 1e9},
      {"test_sequences", int64_t{4096}, "size of the fixed test set", 2, 1 << 24},
      {"eval_every", int64_t{0}, "steps between two tests; 0: twenty in all", 0, 1e9},
  };
}

TrialSpec trial_of(const Config& c) {
  TrialSpec t;
  t.task = {.name = text(c, "task"),
            .data = text(c, "data"),
            .d = integer(c, "d"),
            .n = integer(c, "n"),
            .queries = integer(c, "queries")};
  t.network = network_of(c, t.task);
  Protocol& p = t.protocol;
  p.steps = integer(c, "steps");
  p.batch = integer(c, "batch");
  p.lr = number(c, "lr");
  p.lr_end = number(c, "lr_end");
  p.warmup = number(c, "warmup");
  p.cosine = text(c, "schedule") == "cosine";
  p.replay = text(c, "protocol") == "reference";
  p.adamw = {static_cast<float>(number(c, "beta1")), static_cast<float>(number(c, "beta2")),
             static_cast<float>(number(c, "eps")), static_cast<float>(number(c, "weight_decay"))};
  p.test_sequences = integer(c, "test_sequences");
  p.eval_every = integer(c, "eval_every");
  const auto seed = static_cast<uint64_t>(integer(c, "seed"));
  t.init_seed = derived(p.replay ? kReferenceSeed : seed, kInit);
  t.data_seed = derived(seed, kData);
  t.start = text(c, "start");
  t.start_beta = number(c, "start_beta");
  return t;
}

void check(const TrialSpec& t) {
  const Task& task = task_named(t.task.name);
  task.check(t.task);
  check(t.network);
  if (task.queries == "separate" && t.task.queries == 0)
    throw usage_error(fmt::format("the task {} asks separate queries", t.task.name))
        .hint("queries=1 model=layer");
  if (task.queries == "self" && t.task.queries > 0)
    throw usage_error(fmt::format("the task {} has no separate queries", t.task.name)).hint("queries=0");
  if (t.network.encoder && t.task.queries > 0)
    throw usage_error("the encoder answers at its own tokens and takes no separate queries")
        .hint("queries=0 or model=layer");
  if (!t.network.encoder && t.task.name == "regression")
    throw usage_error("regression is for the encoder").hint("model=encoder");
}

std::map<std::string, double> limits_of(const TrialSpec& t) {
  const TaskSpec& k = t.task;
  std::map<std::string, double> out;
  // The bound is about one layer that sees two orthonormal points through its heads, and nothing else.
  const bool bounded = !t.network.encoder && k.name == "nearest" && k.data == "ortho" && k.n == 2 &&
                       t.network.positions == Positions::none;
  if (bounded) {
    const Certificate c =
        certify({k.d, t.network.rank, static_cast<double>(t.network.heads), k.n, Neighbour::nearest});
    if (c.lower_bound) out["lower_bound"] = *c.lower_bound;
    if (c.plateau) out["plateau"] = *c.plateau;
  }
  if (k.name == "nearest" && k.data == "ortho" && k.queries > 0 && k.n >= 2)
    out["no_selection_floor"] = nearest_floor(k.n);
  if (k.name == "farthest" && k.data == "iid" && k.queries == 0 && k.n >= 2)
    out["no_selection_floor"] = farthest_floors(k.d, k.n).no_selection;
  return out;
}

}  // namespace rankscope
