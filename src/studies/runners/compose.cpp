// How many full layers the composition of functions needs. With `reading = "constructed"` a network is built,
// not trained: L + 1 layers, each of which looks one thing up (first z_0, then z_1(i_0), ...). Every token of
// a table has a code of (table, entry) as its key and the bits of its value, +-1, as its value; the last
// token asks with the code of what it wants to know next, and an MLP, here a sign, makes bits of what it got.
// Layers may be full (softmax) or keep a state, in any order. With `reading = "bound"` nothing is run: it
// says from how many tokens on the theorem says anything.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/stream_name.h"
#include "studies/support/one_by_one.h"
#include "studies/support/patterns.h"
#include "tensors/torch_compat.h"
#include "theory/composition.h"

namespace rankscope {
namespace {

constexpr double kOff = 1e-6;          // what a full layer may be off a bit by
constexpr int64_t kNumberBits = 64;    // of a number of a state
constexpr int64_t kMostTokens = 4096;  // a pattern of the constructed network is held whole
constexpr int kCutInstances = 5;       // run once more with states handed from table to table
const std::vector<std::string> kForms{"full", "linear", "delta", "fastmax"};

std::vector<Key> compose_keys() {
  return {{"reading",
           std::string("constructed"),
           "a constructed network's answers, or from where on the theorem speaks",
           0,
           0,
           {"constructed", "bound"}},
          {"functions", int64_t{2}, "L: how many are composed", 1, 6},
          {"order", std::string(),
           "of the layers: full, linear, delta or fastmax, as in full+linear+full; empty: L + 1 full ones"},
          {"values", int64_t{6}, "of the first function", 2, 4096},
          {"choices", int64_t{3}, "of each number that is told at the end", 1, 64},
          {"width", int64_t{0}, "of keys, random signs; 0: as many as it takes to count them", 0, 65536},
          {"instances", int64_t{500}, "that are asked", 1, 1e6},
          {"log2_message", 10.0, "bound: log2 of heads times width times bits a number", 0, 1e6},
          {"log2_tokens", 20.0, "bound: log2 of the tokens of a prompt", 0, 1e12},
          {"seed", int64_t{0}, "of instances and random keys", 0, 1e15}};
}

CompositionSize size_of(const Config& c) {
  return {integer(c, "functions"), integer(c, "values"), integer(c, "choices")};
}

std::vector<std::string> order_of(const Config& c) {
  const std::string& told = text(c, "order");
  if (told.empty()) return std::vector<std::string>(static_cast<size_t>(integer(c, "functions") + 1), "full");
  std::vector<std::string> out;
  for (size_t from = 0; from <= told.size();) {
    const size_t to = std::min(told.find('+', from), told.size());
    out.push_back(told.substr(from, to - from));
    if (std::find(kForms.begin(), kForms.end(), out.back()) == kForms.end())
      throw unknown_name("kind of layer", out.back(), kForms).in("order=" + told);
    from = to + 1;
  }
  return out;
}

void check_compose(const Config& c) {
  const std::vector<std::string> order = order_of(c);
  if (text(c, "reading") == "bound") return;
  if (static_cast<int64_t>(order.size()) > integer(c, "functions") + 1)
    throw usage_error(fmt::format("{} functions take {} layers to look up, not {}", integer(c, "functions"),
                                  integer(c, "functions") + 1, order.size()))
        .hint("a shorter order, or more functions");
  const CompositionSize size = size_of(c);
  double tokens = 2;
  for (int64_t l = 1; l <= size.functions; ++l)
    tokens += static_cast<double>(size.values) * std::pow(size.choices, l - 1);
  if (tokens > kMostTokens)
    throw usage_error(fmt::format("a prompt of {:.0f} tokens is too long: at most {}", tokens, kMostTokens))
        .hint("fewer functions, values or choices");
}

int64_t bits_for(int64_t count) {
  int64_t bits = 1;
  while (int64_t{1} << bits < count) ++bits;
  return bits;
}

// The network of all instances of one size: keys do not depend on the instance.
class Constructed {
 public:
  explicit Constructed(const Config& c)
      : size_(size_of(c)), value_bits_(bits_for(size_.entries(size_.functions))), order_(order_of(c)) {
    for (const CompositionToken& t : prompt_of(draw_composition(size_, 0, 0))) {
      if (t.key == 0) first_[t.level] = tokens_;
      ++tokens_;
    }
    codes_ = integer(c, "width") == 0 ? counted() : random_signs(c);
    for (const std::string& form : order_)
      if (!patterns_.contains(form)) patterns_[form] = pattern(form);
  }

  int64_t tokens() const { return tokens_; }
  int64_t width() const { return codes_.size(1); }
  double sharpness() const { return sharpness_; }
  const std::vector<std::string>& order() const { return order_; }
  /// Of the largest state: fastmax keeps products of two channels and their sums, the others one row a
  /// channel.
  double state_numbers() const {
    const auto w = static_cast<double>(width()), b = static_cast<double>(value_bits_);
    const bool pairs = std::find(order_.begin(), order_.end(), "fastmax") != order_.end();
    return pairs ? (w + 1) * (w + 2) / 2 * (b + 1) : w * b;
  }

  /// [tokens, value_bits] of +-1; w has nothing to give.
  std::vector<double> values(const Composition& c) const {
    std::vector<double> out;
    for (const CompositionToken& t : prompt_of(c))
      for (int64_t b = 0; b < value_bits_; ++b)
        out.push_back(t.level > size_.functions ? 0.0 : (t.value >> b) & 1 ? 1.0 : -1.0);
    return out;
  }

  struct Answer {
    int64_t value;
    double off;                  // of the bits of full layers that looked up the right thing, at most
    std::vector<int64_t> asked;  // the token that each layer asked for
  };
  Answer run(const Composition& c) const {
    const std::vector<double> v = values(c);
    Answer out{0, 0, {}};
    bool right = true;
    int64_t truth = 0;
    for (size_t layer = 0; layer < order_.size(); ++layer) {
      const auto level = static_cast<int64_t>(layer);
      const int64_t entries = level == 0 ? 1 : size_.entries(level);
      const int64_t entry = level == 0 ? 0 : c.entry(level, out.value) % entries;
      const int64_t token = first_.at(level) + entry;
      out.asked.push_back(token);
      const double* row = patterns_.at(order_[layer]).data_ptr<double>() + token * tokens_;
      truth = level == 0 ? c.start : c.tables[layer - 1][static_cast<size_t>(c.entry(level, truth))];
      int64_t got = 0;
      for (int64_t b = 0; b < value_bits_; ++b) {
        double z = 0;
        for (int64_t j = 0; j < tokens_; ++j) z += row[j] * v[static_cast<size_t>(j * value_bits_ + b)];
        if (z > 0) got |= int64_t{1} << b;
        if (right && order_[layer] == "full")
          out.off = std::max(out.off, std::fabs(z - v[static_cast<size_t>(token * value_bits_ + b)]));
      }
      out.value = got;
      right = right && got == truth;
    }
    return out;
  }

  /// What the query of `token` reads from a state that went from token to token, as a message of its numbers;
  /// [value_bits].
  at::Tensor by_messages(const std::string& form, const Composition& c, int64_t token) const {
    const at::Tensor v = at::tensor(values(c), at::kDouble).view({tokens_, value_bits_});
    at::Tensor state = at::zeros({width(), value_bits_}, at::kDouble);
    for (int64_t j = 0; j < tokens_; ++j) {
      const at::Tensor key = unit().narrow(0, j, 1);  // [1, width]
      const at::Tensor written = form == "delta" ? v.narrow(0, j, 1) - key.matmul(state) : v.narrow(0, j, 1);
      state = state + key.t().matmul(written);
    }
    return unit().narrow(0, token, 1).matmul(state).squeeze(0);
  }
  at::Tensor directly(const std::string& form, const Composition& c, int64_t token) const {
    return patterns_.at(form)
        .narrow(0, token, 1)
        .matmul(at::tensor(values(c), at::kDouble).view({tokens_, value_bits_}))
        .squeeze(0);
  }

 private:
  at::Tensor unit() const { return codes_ / std::sqrt(static_cast<double>(width())); }

  // The bits of table and entry: no two tokens have the same, so that codes differ by two at least.
  at::Tensor counted() const {
    const int64_t levels = bits_for(size_.functions + 2);
    std::vector<double> out;
    for (const CompositionToken& t : prompt_of(draw_composition(size_, 0, 0)))
      for (int64_t b = 0; b < levels + value_bits_; ++b)
        out.push_back(((b < levels ? t.level >> b : t.key >> (b - levels)) & 1) ? 1.0 : -1.0);
    return at::tensor(out, at::kDouble).view({tokens_, -1});
  }
  at::Tensor random_signs(const Config& c) const {
    return at::sign(normal_matrix(static_cast<uint64_t>(integer(c, "seed")), stream_of("composition codes"),
                                  tokens_, integer(c, "width")));
  }

  at::Tensor pattern(const std::string& form) {
    if (form == "delta") return delta_pattern(unit(), unit(), 1).contiguous();
    if (form == "linear") return made_up_pattern({.variant = "linear"}, unit(), unit()).contiguous();
    // Softmax is off by at most tokens times exp(- scale times the least difference of scores), doubled; at
    // the same scale the second degree of the exponential has its chance.
    at::Tensor scores = codes_.matmul(codes_.t());
    scores.fill_diagonal_(-INFINITY);
    const double gap = std::max(1e-3, static_cast<double>(width()) - scores.max().item<double>());
    sharpness_ = (std::log(static_cast<double>(tokens_)) + std::log(1 / kOff)) / gap;
    if (form == "full")
      return made_up_pattern({.variant = "softmax", .scale = sharpness_}, codes_, codes_).contiguous();
    return made_up_pattern({.variant = "fastmax:p=2", .scale = 8 * sharpness_}, codes_, codes_).contiguous();
  }

  CompositionSize size_;
  int64_t tokens_ = 0, value_bits_;
  std::vector<std::string> order_;
  std::map<int64_t, int64_t> first_;  // token of every table
  at::Tensor codes_;                  // [tokens, width]
  double sharpness_ = 0;
  std::map<std::string, at::Tensor> patterns_;  // [tokens, tokens], by the token that is asked for
};

Outcome constructed(const Config& c) {
  const Constructed network(c);
  const CompositionSize size = size_of(c);
  const auto seed = static_cast<uint64_t>(integer(c, "seed"));
  double right = 0, off = 0, handed = 0;
  const int64_t instances = integer(c, "instances");
  for (int64_t i = 0; i < instances; ++i) {
    const Composition one = draw_composition(size, seed, static_cast<uint32_t>(i));
    const Constructed::Answer got = network.run(one);
    right += got.value == one.answer();
    off = std::max(off, got.off);
    for (size_t layer = 0; i < kCutInstances && layer < network.order().size(); ++layer)
      if (const std::string& form = network.order()[layer]; form == "linear" || form == "delta")
        handed = std::max(handed, (network.by_messages(form, one, got.asked[layer]) -
                                   network.directly(form, one, got.asked[layer]))
                                      .abs()
                                      .max()
                                      .item<double>());
  }
  const auto& order = network.order();
  const auto states = order.size() - static_cast<size_t>(std::count(order.begin(), order.end(), "full"));
  Outcome out;
  out.values = {{"accuracy", right / static_cast<double>(instances)},
                {"off", off},
                {"chance", 1.0 / static_cast<double>(size.entries(size.functions))},
                {"tokens", static_cast<double>(network.tokens())},
                {"layers", static_cast<double>(order.size())},
                {"full_layers", static_cast<double>(order.size() - states)},
                {"key_width", static_cast<double>(network.width())},
                {"sharpness", network.sharpness()}};
  if (states > 0) {
    out.values["state_bits"] = static_cast<double>(kNumberBits) * network.state_numbers();
    out.values["handed_off"] = handed;
  }
  return out;
}

Outcome bound(const Config& c) {
  const double needed = log2_tokens_hybrids_fail(number(c, "log2_message"), integer(c, "functions"));
  Outcome out;
  out.values = {{"log2_tokens_hybrids_fail", needed},
                {"log2_tokens_full_layers_fail",
                 log2_tokens_full_layers_fail(number(c, "log2_message"), integer(c, "functions"))},
                {"vacuous", number(c, "log2_tokens") < needed ? 1.0 : 0.0}};
  return out;
}

double compose_flops(const Config& c) {
  if (text(c, "reading") == "bound") return 1;
  const auto tokens = static_cast<double>(size_of(c).tokens());
  return 16 * tokens * number(c, "instances") * static_cast<double>(order_of(c).size());
}

void run_compose(std::span<const TrialJob> jobs, const RunContext& context) {
  const c10::NoGradGuard no_grad;
  use_threads(context.threads);
  run_one_by_one(jobs, context, compose_flops,
                 [](const Config& c) { return text(c, "reading") == "bound" ? bound(c) : constructed(c); });
}

}  // namespace

extern const Runner runner_compose{
    .name = "compose",
    .summary = "composes functions by a constructed network of full layers and states",
    .keys = compose_keys(),
    .results = {"accuracy", "off", "chance", "tokens", "layers", "full_layers", "key_width", "sharpness",
                "state_bits", "handed_off", "log2_tokens_hybrids_fail", "log2_tokens_full_layers_fail",
                "vacuous"},
    .check = check_compose,
    .flops = compose_flops,
    .run = run_compose};

}  // namespace rankscope
