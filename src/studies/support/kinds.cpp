#include "studies/support/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attention/variant.h"
#include "base/error.h"
#include "base/philox.h"
#include "parts/check.h"
#include "spec/variant_text.h"
#include "tasks/unasked.h"

namespace rankscope {
namespace {

constexpr const char* kPointsTask = "lookup";
constexpr uint32_t kInit = 1, kData = 2;

uint64_t derived(const Config& c, uint32_t purpose) {
  return Philox{static_cast<uint64_t>(integer(c, "seed")), purpose, 0}.below(UINT64_MAX, 0);
}

std::vector<std::string> task_names() {
  std::vector<std::string> names{kPointsTask};
  for (const TokenTask* task : token_tasks()) names.emplace_back(task->name);
  return names;
}

const TokenTask& task_of(const Config& c) { return token_task_named(text(c, "task")); }

AttentionSpec attention_of(const Config& c, const ChosenKind& chosen) {
  const int64_t d = integer(c, "d"), heads = integer(c, "heads"), rank = integer(c, "rank");
  if (rank == 0 && d % heads != 0)
    throw usage_error(fmt::format("{} heads do not divide the width {}", heads, d))
        .hint("rank=16, or other heads");
  AttentionSpec a;
  a.variant = chosen.variant;
  a.heads = a.kv_heads = heads;
  a.d_qk = a.d_v = rank > 0 ? rank : d / heads;
  a.scale = 1 / std::sqrt(static_cast<double>(a.d_qk));
  a.causal = flag(c, "causal");
  a.sinks = chosen.kind->sinks;
  a.bias = a.output_bias = false;
  const AttentionVariant& variant = attention_variant(a.variant);
  if (variant.only_causal && !a.causal)
    throw usage_error(fmt::format("{} runs forward over the tokens", chosen.kind->name)).hint("causal=true");
  if (!variant.may_be_causal && a.causal)
    throw usage_error(
        fmt::format("{} looks at later queries, and a mask would not hide them", chosen.kind->name))
        .hint("causal=false, or kind=prefix_normalised");
  return a;
}

BlockSpec block_of(const Config& c, const ChosenKind& chosen, const NormSpec& norm) {
  const int64_t mlp = integer(c, "mlp");
  const MlpSpec words{
      .width = mlp, .activation = flag(c, "gated") ? Activation::silu : Activation::gelu, .bias = false};
  BlockSpec block = classic_block(NormPlace::pre, norm, attention_of(c, chosen),
                                  mlp == 0           ? ""
                                  : flag(c, "gated") ? "gated_mlp"
                                                     : "mlp",
                                  words);
  PartSpec& part = block.attention_branch()->part;
  part.name = chosen.kind->part;
  if (!chosen.kind->option.empty()) part.options[std::string(chosen.kind->option)] = chosen.kind->value;
  return block;
}

ModelSpec network_of(const Config& c) {
  const NormSpec norm{.kind = NormKind::rms, .epsilon = 1e-6};
  ModelSpec s;
  s.architecture = "rankscope";
  s.width = s.embedding.width = integer(c, "d");
  s.embedding.positions = flag(c, "positions") ? integer(c, "tokens") : 0;
  s.position = flag(c, "positions") ? PositionKind::learned : PositionKind::none;
  for (const ChosenKind& chosen : chosen_kinds(text(c, "kind"), integer(c, "layers"))) {
    s.blocks.push_back(block_of(c, chosen, norm));
    s.blocks.back().weights = s.depth() - 1;
  }
  s.stored_blocks = integer(c, "layers");
  s.final_norm = norm;
  s.output = {.kind = HeadKind::linear, .width = s.width};
  if (draws_points(c)) {
    s.embedding.points = integer(c, "points") + 1;
    s.embedding.point_map = true;
    s.output.vocabulary = integer(c, "points");
    s.output.last_token = true;
  } else {
    const TokenData sizes = task_of(c).make({.tokens = integer(c, "tokens"), .train = 1, .test = 1});
    if (sizes.vocabulary == 0)
      throw usage_error(fmt::format("the task {} has no words", text(c, "task"))).hint("task=induction");
    s.embedding.vocabulary = sizes.vocabulary;
    s.output.vocabulary = sizes.classes;
  }
  s.init.kind = InitKind::mixed;
  s.init.std = 1 / std::sqrt(static_cast<double>(s.width));
  if (text(c, "skips") == "absent") s = without_skips(s);
  return s;
}

}  // namespace

const std::vector<AttentionKind>& attention_kinds() {
  static const std::vector<AttentionKind> all{
      {.name = "softmax"},
      {.name = "sigmoid", .variant = "sigmoid"},
      {.name = "sink_column", .variant = "sink_column"},
      {.name = "learned_sink", .sinks = true},
      {.name = "differential", .part = "differential_attention", .variant = "differential"},
      {.name = "fastmax", .variant = "fastmax"},
      {.name = "doubly_normalised", .variant = "doubly_normalised"},
      {.name = "hybrid_normalised", .part = "hybrid_attention", .variant = "hybrid_normalised"},
      {.name = "sinkhorn", .variant = "sinkhorn"},
      {.name = "prefix_normalised", .variant = "prefix_normalised"},
      {.name = "linear", .variant = "linear"},
      {.name = "decay", .variant = "decay"},
      {.name = "delta", .part = "delta_attention", .variant = "delta"},
      {.name = "gated_delta", .part = "delta_attention", .variant = "delta", .option = "forget", .value = 1},
      {.name = "mixed", .part = "mixed_attention", .variant = "mixed"},
      {.name = "gate_output", .part = "gated_attention"},
      {.name = "gate_output_by_head", .part = "gated_attention", .option = "by_head", .value = 1},
      {.name = "gate_output_shared", .part = "gated_attention", .option = "shared", .value = 1},
      {.name = "gate_output_silu", .part = "gated_attention", .option = "silu", .value = 1},
      {.name = "gate_output_added", .part = "gated_attention", .option = "additive", .value = 1},
      {.name = "gate_values", .part = "gated_attention", .option = "place", .value = 2},
      {.name = "gate_keys", .part = "gated_attention", .option = "place", .value = 3},
      {.name = "gate_queries", .part = "gated_attention", .option = "place", .value = 4},
      {.name = "gate_written", .part = "gated_attention", .option = "place", .value = 5}};
  return all;
}

ChosenKind chosen_kind(const std::string& text) {
  const std::string name = read_variant(text).name;
  std::vector<std::string> known;
  for (const AttentionKind& kind : attention_kinds()) {
    if (kind.name == name) return {&kind, std::string(kind.variant) + text.substr(name.size())};
    known.emplace_back(kind.name);
  }
  throw unknown_name("kind of attention", name, known).in("kind=" + text);
}

std::vector<ChosenKind> chosen_kinds(const std::string& text, int64_t layers) {
  std::vector<ChosenKind> out;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find('/', from), text.size());
    out.push_back(chosen_kind(text.substr(from, to - from)));
    from = to + 1;
  }
  if (out.size() == 1) out.resize(static_cast<size_t>(layers), out.front());
  if (static_cast<int64_t>(out.size()) != layers)
    throw usage_error(fmt::format("{} kinds of attention for {} layers", out.size(), layers))
        .in("kind=" + text)
        .hint("one kind for all layers, or one for each: softmax/linear/softmax");
  return out;
}

std::vector<Key> kind_keys() {
  return {
      {"task", std::string("induction"), "what is asked", 0, 0, task_names()},
      {"kind", std::string("softmax"),
       "how it attends: softmax, linear, gated_delta, gate_output, ..., with options as in fastmax:p=2; one "
       "for "
       "all layers, or one for each, as in softmax/linear"},
      {"causal", false, "no token sees a later one"},
      {"skips",
       std::string("on"),
       "around attention and MLP: on, taken off after training, or absent in training, too",
       0,
       0,
       {"on", "off", "absent"}},
      {"depth", int64_t{1}, "blocks passed where rank and spread are read", 0, 64},
      {.name = "shift",
       .otherwise = 0.0,
       .help = "nats added to the score of the first key after training, in every head: a dose of sink",
       .low = -100,
       .high = 100,
       .later = true},
      {.name = "shift_to",
       .otherwise = std::string("first"),
       .help =
           "where the mass of that dose goes: the first key, or as a control nowhere, to all, to a random "
           "one",
       .choices = {"first", "nothing", "uniform", "random"},
       .later = true},
      {"layers", int64_t{3}, "L", 1, 64},
      {"d", int64_t{32}, "width", 2, 4096},
      {"heads", int64_t{2}, "H", 1, 256},
      {"rank", int64_t{0}, "width of a head; 0: d / heads", 0, 4096},
      {"mlp", int64_t{64}, "hidden width of the MLP; 0: none", 0, 65536},
      {"gated", false, "a gated MLP (SwiGLU)"},
      {"positions", true, "learned ones, added"},
      {"tokens", int64_t{16}, "of a sequence", 3, 256},
      {"points", int64_t{8}, "lookup: width of a point", 1, 4096},
      {"asked",
       std::string("all"),
       "labels that are trained on and scored: all the task has, or those of last tokens",
       0,
       0,
       {"all", "last"}},
      {"train", int64_t{8192}, "sequences; lookups draw fresh ones", 1, 1e7},
      {"test", int64_t{1024}, "sequences that are scored; a quarter of them is looked into", 4, 1e6},
      {"steps", int64_t{1000}, "updates", 1, 1e9},
      {"batch", int64_t{32}, "sequences a step", 1, 1 << 20},
      {"lr", 0.003, "learning rate at its highest; half a cosine down to 0", 0, 1e3},
      {"warmup", 0.1, "fraction of the steps with a rising learning rate", 0, 1},
      {"clip", 1.0, "of the gradient's norm; 0: none", 0, 1e9},
      {"seed", int64_t{0}, "of initialisation and data, independently", 0, 1e15},
  };
}

bool draws_points(const Config& c) { return text(c, "task") == kPointsTask; }

TrialSpec kind_trial(const Config& c) {
  if (integer(c, "depth") > integer(c, "layers"))
    throw usage_error(
        fmt::format("a network of {} layers has no depth {}", integer(c, "layers"), integer(c, "depth")))
        .hint("a smaller depth, or more layers");
  if (c.contains("shift"))
    for (const ChosenKind& chosen : chosen_kinds(text(c, "kind"), integer(c, "layers")))
      if (chosen.variant != "softmax")
        throw usage_error(fmt::format("only a softmax takes a dose of sink, not {}", chosen.kind->name))
            .in("shift=" + to_text(c.at("shift")))
            .hint("shift=0, or kind=softmax");
  TrialSpec t;
  t.network = network_of(c);
  check(t.network, "the keys of the trial");
  t.task = {.name = kPointsTask, .data = "iid", .d = integer(c, "points"), .n = integer(c, "tokens")};
  Protocol& p = t.protocol;
  p.steps = integer(c, "steps");
  p.batch = integer(c, "batch");
  p.lr = number(c, "lr");
  p.warmup = number(c, "warmup");
  p.clip = number(c, "clip");
  p.shuffle = true;
  p.test_sequences = 0;
  if (!draws_points(c)) p.window = std::max<int64_t>(1, (integer(c, "train") + p.batch - 1) / p.batch);
  t.init_seed = derived(c, kInit);
  t.data_seed = derived(c, kData);
  return t;
}

TokenData token_data(const Config& c) {
  TokenData data = task_of(c).make({.tokens = integer(c, "tokens"),
                                    .train = integer(c, "train"),
                                    .test = integer(c, "test"),
                                    .seed = derived(c, kData)});
  if (text(c, "asked") == "last")
    for (TokenSet* set : {&data.train, &data.test})
      for (size_t at = 0; at < set->labels.size(); ++at)
        if ((at + 1) % static_cast<size_t>(set->tokens) != 0) set->labels[at] = kUnasked;
  return data;
}

ModelSpec with_sink_shift(ModelSpec network, const Config& c) {
  if (!c.contains("shift")) return network;
  const std::string nats = to_text(c.at("shift")), to = text_or(c, "shift_to", "first");
  for (BlockSpec& block : network.blocks)
    block.attention().variant = to == "first" ? fmt::format("shifted_sink:nats={}", nats)
                                              : fmt::format("shifted_control:nats={},to={}", nats, to);
  return network;
}

ModelSpec without_skips(ModelSpec network) {
  for (BlockSpec& block : network.blocks)
    for (BranchSpec& branch : block.branches) branch.skip = false;
  return network;
}

}  // namespace rankscope
