#include "studies/support/train_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/philox.h"
#include "parts/check.h"
#include "parts/program.h"
#include "spec/variant_text.h"
#include "theory/certificate.h"
#include "theory/limits.h"
#include "theory/square_wave.h"
#include "train/networks.h"

namespace rankscope {
namespace {

// Independent streams from one number: initialisation and data must not share randomness.
uint64_t derived(uint64_t seed, uint32_t purpose) { return Philox{seed, purpose, 0}.below(UINT64_MAX, 0); }

constexpr uint32_t kInit = 1, kData = 2;
constexpr int64_t kMostWaveWidth = 16;   // above it the bound of the square wave would take minutes
constexpr int64_t kReferenceSeed = 613;  // the reference starts every run from this one

NormKind norm_of(const std::string& name) {
  for (const NormKind kind : norm_kinds())
    if (name == to_string(kind)) return kind;
  return NormKind::none;
}

constexpr const char *kUsualAttention = "attention", *kUsualMlp = "mlp";

std::vector<std::string> part_names(Part::Kind kind) {
  std::vector<std::string> names;
  for (const Part* part : parts())
    if (part->kind == kind) names.emplace_back(part->name);
  return names;
}

// "active=1+experts=4": each goes to the branches whose part declares it. One network has one text, since the
// text is part of a trial's name: sorted, once each, nothing that has its default.
void set_options(ModelSpec& spec, const std::string& given) {
  if (given.empty()) return;
  std::map<std::string, double> said;
  std::stringstream list(given);
  for (std::string item; std::getline(list, item, '+');) {
    const size_t at = item.find('=');
    double value = 0;
    const char* end = item.data() + item.size();
    if (at == std::string::npos || at + 1 == item.size() ||
        std::from_chars(item.data() + at + 1, end, value).ptr != end)
      throw usage_error(fmt::format("\"{}\" is no option of a part", printable(item)))
          .hint("options=active=1+experts=3");
    said[item.substr(0, at)] = value;
  }
  std::string canonical;
  for (const auto& [name, value] : said) {
    bool known = false, differs = false;
    for (BlockSpec& block : spec.blocks)
      for (BranchSpec& branch : block.branches)
        for (const PartOption& o : part_named(branch.part.name).options) {
          if (o.name != name) continue;
          known = true;
          if (value == o.otherwise) continue;
          differs = true;
          branch.part.options[name] = value;
        }
    if (!known)
      throw usage_error(fmt::format("no part of this network has an option \"{}\"", printable(name)))
          .hint("another part= or mlp_part=");
    if (differs) canonical += fmt::format("{}{}={:g}", canonical.empty() ? "" : "+", name, value);
  }
  if (canonical != given)
    throw usage_error(
        fmt::format("options are sorted, once each, without defaults: \"{}\"", printable(given)))
        .hint(canonical.empty() ? "leave options out" : "options=" + canonical);
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const Task* task : tasks()) names.emplace_back(task->name);
  return names;
}

// What the keys say of heads and ranks in a stream of width D.
struct HeadShapeKeys {
  int64_t heads, rank, v_rank;
  double scale;
};

HeadShapeKeys heads_of(const Config& c, int64_t D, bool encoder) {
  const int64_t heads = integer(c, "heads"), rank = integer(c, "rank"), v_rank = integer(c, "v_rank");
  if (heads > 0 && rank == 0 && D % heads != 0)
    throw usage_error(fmt::format("{} heads do not divide the width {}", heads, D))
        .hint("give rank= too, or other heads");
  HeadShapeKeys out{};
  out.rank = rank > 0 ? rank : heads > 0 ? D / heads : D;
  out.heads = heads > 0 ? heads : std::max<int64_t>(1, D / out.rank);
  out.v_rank = v_rank > 0 ? v_rank : encoder ? out.rank : D;
  out.scale = 1.0 / std::sqrt(static_cast<double>(text(c, "scale") == "width" ? D : out.rank));
  if (out.rank < 1 || out.rank > D)
    throw usage_error(fmt::format("a head's rank of {} is not between 1 and the width {}", out.rank, D))
        .hint("a smaller rank");
  if (out.v_rank < 1 || out.v_rank > D)
    throw usage_error(
        fmt::format("a head's value rank of {} is not between 1 and the width {}", out.v_rank, D))
        .hint("a smaller v_rank");
  return out;
}

// "soft" was its name before there were others, and is part of the ids of trials.
std::string variant_of(const Config& c) {
  const std::string& told = text(c, "attention");
  if (told == "soft") return "softmax";
  const std::string name = read_variant(told).name;
  const auto& known = attention_names();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw unknown_name("attention variant", name, known).in("attention=" + told);
  return told;
}

ModelSpec layer_of(const Config& c, const TaskSpec& task, const Task& t) {
  const std::string& positions = text(c, "positions");
  if (integer(c, "layers") != 1 || integer(c, "width") != 1 || integer(c, "mlp") > 0 ||
      integer(c, "embed") != 0)
    throw usage_error("the one-layer model has one layer, width 1, no MLP and no embedding")
        .hint("layers=1 width=1 mlp=0 embed=0, or model=encoder");
  const auto refuse_if = [](bool given, const char* key) {
    if (given)
      throw usage_error(
          fmt::format("the one-layer model has no norm, no bias and values of full rank: {} is the "
                      "encoder's",
                      key))
          .hint("model=encoder");
  };
  refuse_if(text(c, "norm") != "unit", "norm");
  refuse_if(text(c, "norm_place") != "post", "norm_place");
  refuse_if(!flag(c, "bias") && text(c, "positions") == "none", "bias");
  refuse_if(integer(c, "v_rank") != 0, "v_rank");
  for (const char* key : {"part", "mlp_part", "options"})
    if (c.count(key) > 0)
      throw usage_error(fmt::format("the one-layer model has plain attention: {} is the encoder's", key))
          .hint("model=encoder");
  if (positions == "additive")
    throw usage_error("the one-layer model knows positions none and concatenated")
        .hint("positions=concatenated");
  const bool places = positions == "concatenated";
  const int64_t width = places ? integer(c, "position_dim") : 0, d = t.token_width(task);
  const HeadShapeKeys h = heads_of(c, d + width, false);
  ModelSpec s = points_layer(d, h.heads, h.rank, h.scale, t.answer_width(task),
                             places ? token_count(task) : 0, width, flag(c, "bias"));
  s.blocks.front().attention().variant = variant_of(c);
  return s;
}

ModelSpec encoder_of(const Config& c, const TaskSpec& task, const Task& t) {
  const std::string& positions = text(c, "positions");
  const int64_t d = t.token_width(task), embed = integer(c, "embed"), answer = t.answer_width(task);
  const int64_t beside = embed == 0 && positions == "concatenated" ? integer(c, "position_dim") : 0;
  const int64_t D = embed > 0 ? embed : d + beside;
  const HeadShapeKeys h = heads_of(c, D, true);
  AttentionSpec a;
  a.variant = variant_of(c);
  a.modules = integer(c, "width");
  a.heads = a.kv_heads = a.modules * h.heads;
  a.d_qk = h.rank;
  a.d_v = h.v_rank;
  a.scale = h.scale;
  a.bias = a.output_bias = flag(c, "bias");
  const MlpSpec mlp{.width = integer(c, "mlp") >= 0 ? integer(c, "mlp") : 2048,
                    .activation = Activation::relu,
                    .bias = a.bias};
  const NormPlace place = text(c, "norm_place") == "pre" ? NormPlace::pre : NormPlace::post;
  BlockSpec block = classic_block(place, fused_norm(norm_of(text(c, "norm"))), a,
                                  mlp.width > 0 ? text_or(c, "mlp_part", kUsualMlp) : "", mlp);
  if (mlp.width == 0 && c.count("mlp_part") > 0)
    throw usage_error("the network has no MLP for mlp_part to be").hint("mlp=64, or leave mlp_part out");
  const Part& part = part_named(text_or(c, "part", kUsualAttention));
  block.attention_branch()->part.name = part.name;
  if (!part.variant.empty()) {
    if (a.variant == "softmax") block.attention().variant = part.variant;
    if (read_variant(block.attention().variant).name != part.variant)
      throw usage_error(fmt::format("the part {} has a pattern of its own", part.name))
          .hint("attention=soft");
  }
  ModelSpec s = points_encoder(d, block, integer(c, "layers"), answer);
  s.width = D;
  s.init.same_blocks = flag(c, "same_init");
  s.embedding.position_width = beside;
  if (positions != "none") s.embedding.positions = token_count(task);
  if (embed > 0) {
    s.embedding.point_map = true;
    s.embedding.bias = a.bias;
    s.embedding.width = D;
    s.output = {.kind = HeadKind::linear, .vocabulary = answer, .width = D, .bias = a.bias};
  } else if (answer > D) {
    throw usage_error(fmt::format("an answer of width {} cannot be read off tokens of width {}", answer, D))
        .hint("embed=64");
  }
  s.output.last_token = t.last_token;
  set_options(s, text_or(c, "options", ""));
  return s;
}

}  // namespace

std::vector<Key> train_keys() {
  return {
      {"task", std::string("farthest"), "what is asked", 0, 0, task_names()},
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
      {.name = "attention",
       .otherwise = std::string("soft"),
       .help = "softmax, hard (the largest score takes all), or another file of attention/ with its options: "
               "fastmax:p=2",
       .also = "softmax"},
      {"part", std::string(kUsualAttention), "file of parts/ that attends", 0, 0,
       part_names(Part::Kind::attention), true},
      {"mlp_part", std::string(kUsualMlp), "file of parts/ that is the MLP", 0, 0,
       part_names(Part::Kind::mlp), true},
      {"options", std::string(), "options of these parts: active=1+experts=3", 0, 0, {}, true},
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
      {"start_scale",
       1.0,
       "of start=random: value and output maps start this many times as large",
       0,
       1e3,
       {},
       true},
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
  const Task& task = task_named(t.task.name);
  t.network = text(c, "model") == "encoder" ? encoder_of(c, t.task, task) : layer_of(c, t.task, task);
  Protocol& p = t.protocol;
  p.steps = integer(c, "steps");
  p.batch = integer(c, "batch");
  p.lr = number(c, "lr");
  p.lr_end = number(c, "lr_end");
  p.warmup = number(c, "warmup");
  p.schedule = text(c, "schedule") == "cosine" ? Schedule::cosine : Schedule::constant;
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
  if (c.count("start_scale") > 0) t.start_scale = number(c, "start_scale");
  return t;
}

void check(const TrialSpec& t) {
  const Task& task = task_named(t.task.name);
  task.check(t.task);
  check(t.network, "the keys of the trial");
  if (t.start != "random" && t.start_scale != 1)
    throw usage_error(fmt::format("start_scale is of random starts, and this one is {}", t.start))
        .hint("start=random, or start_scale=1");
  if (tokens_of(t) > 256)
    throw usage_error(fmt::format("{} tokens are more than the 256 of short-context attention", tokens_of(t)))
        .hint("n=256");
  if (task.queries == "separate" && t.task.queries == 0)
    throw usage_error(fmt::format("the task {} asks separate queries", t.task.name))
        .hint("queries=1 model=layer");
  if (task.queries == "self" && t.task.queries > 0)
    throw usage_error(fmt::format("the task {} has no separate queries", t.task.name)).hint("queries=0");
  if (!asks_separately(t.network) && t.task.queries > 0)
    throw usage_error("the encoder answers at its own tokens and takes no separate queries")
        .hint("queries=0 or model=layer");
  if (asks_separately(t.network) && task.last_token)
    throw usage_error("regression is for the encoder").hint("model=encoder");
}

std::vector<std::string> limit_names() { return {"lower_bound", "plateau", "no_selection_floor"}; }

std::map<std::string, double> limits_of(const TrialSpec& t) {
  const TaskSpec& k = t.task;
  std::map<std::string, double> out;
  // The bound is about one layer whose heads see the query through a few numbers each, and nothing else. The
  // farthest point is the nearest one of the opposite query, which has the same law.
  const bool neighbour = k.name == "nearest" || k.name == "farthest";
  const bool asked = neighbour && (k.data == "ortho" || k.data == "iid") && k.queries > 0 && k.n >= 2;
  if (asked && asks_separately(t.network) && t.network.sources.front().embedding.positions == 0) {
    const AttentionSpec& a = t.network.blocks.front().attention();
    const Certificate c =
        certify({k.d, a.d_qk, static_cast<double>(a.heads), k.n,
                 k.data == "ortho" ? Neighbour::nearest : Neighbour::nearest_of_independent});
    if (c.lower_bound) out["lower_bound"] = *c.lower_bound;
    if (c.plateau) out["plateau"] = *c.plateau;
  }
  // Places and biases of the points change nothing in the bound; the query has none.
  if (asks_separately(t.network) && k.name == "square-wave" && k.data == "ortho" && k.d <= kMostWaveWidth) {
    const AttentionSpec& a = t.network.blocks.front().attention();
    const double jumps = static_cast<double>(k.d * k.d);
    out["lower_bound"] =
        SquareWave(k.d, 4 * std::sqrt(2.0) / jumps).lower_bound(a.d_qk, static_cast<double>(a.heads));
  }
  if (asked) out["no_selection_floor"] = k.data == "ortho" ? nearest_floor(k.n) : independent_floor(k.d, k.n);
  // The one-layer model has no skip: it cannot tell its own token from the others without looking at scores.
  if (k.name == "farthest" && k.data == "iid" && k.queries == 0 && k.n >= 2) {
    const FarthestFloors floors = farthest_floors(k.d, k.n);
    out["no_selection_floor"] = asks_separately(t.network) ? floors.mean_of_tokens : floors.no_selection;
  }
  return out;
}

}  // namespace rankscope
