#include "parts/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "spec/variant_text.h"

namespace rankscope {
namespace {

using Role = Parameter::Role;

// "hook_q" of the branch "attn" is "attn.hook_q"; what has no name stays without.
std::string site_named_after(const BranchSpec& branch, std::string_view site) {
  return site.empty() ? "" : fmt::format("{}.{}", branch.name, site);
}

}  // namespace

const Operation* Program::attend() const {
  for (const Operation& o : operations)
    if (o.kind == Operation::Kind::attend) return &o;
  return nullptr;
}

bool Program::writes_heads() const {
  const Operation& last = operations.back();
  return last.kind == Operation::Kind::linear && last.from >= kFirstMade &&
         made(last.from).kind == Operation::Kind::attend;
}

bool Program::maps_tokens() const {
  const Operation* a = attend();
  if (a == nullptr) return false;
  const auto maps = [&](Value v) {
    while (v >= kFirstMade && made(v).kind == Operation::Kind::norm) v = made(v).from;
    return v < kFirstMade || (made(v).kind == Operation::Kind::linear && made(v).from < kFirstMade);
  };
  return maps(a->from) && maps(a->second) && maps(a->third);
}

const Part& part_named(std::string_view name) {
  std::vector<std::string> known;
  for (const Part* part : parts()) {
    if (part->name == name) return *part;
    known.emplace_back(part->name);
  }
  throw unknown_name("part", name, known);
}

void check_part(const BranchSpec& branch) {
  const Part& part = part_named(branch.part.name);
  if ((part.kind == Part::Kind::attention) != (branch.attention() != nullptr))
    throw Error(
        fmt::format("the branch {} has not the words that the part {} needs", branch.name, part.name));
  const std::string variant = branch.attention() ? read_variant(branch.attention()->variant).name : "";
  if (!part.variant.empty() && variant != part.variant)
    throw Error(
        fmt::format("the part {} goes with {} attention, not with {}", part.name, part.variant, variant));
  for (const Part* other : parts())
    if (branch.attention() && variant == other->variant && part.variant != other->variant)
      throw Error(fmt::format("{} attention has parameters of its own: it goes with the part {}, not with {}",
                              other->variant, other->name, part.name));
  for (const auto& [name, value] : branch.part.options) {
    const auto it = std::find_if(part.options.begin(), part.options.end(),
                                 [&, &wanted = name](const PartOption& o) { return o.name == wanted; });
    if (it == part.options.end()) {
      std::vector<std::string> known;
      for (const PartOption& o : part.options) known.emplace_back(o.name);
      throw unknown_name(fmt::format("option of the part {}", part.name), name, known);
    }
    if (value == it->otherwise)
      throw Error(fmt::format("the option {} of the part {} has its default, {}: it is left out then", name,
                              part.name, value));
    if (!(value >= it->low && value <= it->high) || value != std::floor(value))
      throw usage_error(
          fmt::format("the option {} of the part {} is {}, but should be a whole number from {} to {}", name,
                      part.name, value, it->low, it->high));
  }
}

Program program_of(const BranchSpec& branch, int64_t width, int64_t other_width) {
  check_part(branch);
  PartBuilder builder(branch, width, other_width > 0 ? other_width : width);
  part_named(branch.part.name).build(builder);
  return builder.take();
}

PartBuilder::PartBuilder(const BranchSpec& branch, int64_t width, int64_t other_width)
    : branch_(branch), width_(width), other_width_(other_width) {}

double option_of(const PartSpec& part, std::string_view name) {
  const auto set = part.options.find(std::string(name));
  if (set != part.options.end()) return set->second;
  for (const PartOption& o : part_named(part.name).options)
    if (o.name == name) return o.otherwise;
  throw Error(fmt::format("the part {} declares no option {}", part.name, name));
}

double PartBuilder::option(std::string_view name) const { return option_of(branch_.part, name); }

int64_t PartBuilder::width_of(Value value) const {
  return value == kInput ? width_ : value == kOther ? other_width_ : program_.made(value).width;
}

Value PartBuilder::add(Operation operation) {
  program_.width = operation.width;
  program_.operations.push_back(std::move(operation));
  return static_cast<Value>(program_.operations.size()) - 1 + kFirstMade;
}

Value PartBuilder::linear(std::string_view letter, Value from, int64_t out, const Linear& how) {
  const int64_t in = width_of(from);
  const std::string W = fmt::format("{}.W_{}", branch_.name, letter);
  const std::string b = how.bias ? fmt::format("{}.b_{}", branch_.name, letter) : "";
  program_.parameters.push_back({.name = W,
                                 .shape = {out, in},
                                 .role = Role::matrix,
                                 .spread = how.spread,
                                 .carries_values = how.carries_values,
                                 .head_axis = how.head_axis,
                                 .per_kv_head = how.per_kv_head});
  if (how.bias)
    program_.parameters.push_back({.name = b,
                                   .shape = {out},
                                   .role = Role::bias,
                                   .spread = how.bias_spread,
                                   .head_axis = how.head_axis == 0 ? 0 : -1,
                                   .per_kv_head = how.per_kv_head});
  return add({.kind = Operation::Kind::linear,
              .from = from,
              .W = W,
              .b = b,
              .width = out,
              .scale = how.scale,
              .site = site_named_after(branch_, how.site),
              .heads = how.head_axis != 0 ? 0
                       : how.per_kv_head  ? attention().kv_heads
                                          : attention().heads});
}

Value PartBuilder::activation(Value from, Activation activation, std::string_view site) {
  return add({.kind = Operation::Kind::activation,
              .from = from,
              .width = width_of(from),
              .activation = activation,
              .site = site_named_after(branch_, site)});
}

Value PartBuilder::multiply(Value carried, Value held, std::string_view site) {
  return add({.kind = Operation::Kind::multiply,
              .from = carried,
              .second = held,
              .width = width_of(carried),
              .site = site_named_after(branch_, site)});
}

Value PartBuilder::sum(Value carried, Value held) {
  return add({.kind = Operation::Kind::sum, .from = carried, .second = held, .width = width_of(carried)});
}

Value PartBuilder::repeat(Value from, int64_t times, int64_t chunk) {
  return add({.kind = Operation::Kind::repeat,
              .from = from,
              .width = width_of(from) * times,
              .groups = times,
              .chunk = chunk});
}

Value PartBuilder::convolve(std::string_view name, Value from, int64_t taps, bool per_kv_head) {
  const std::string W = fmt::format("{}.{}", branch_.name, name);
  program_.parameters.push_back({.name = W,
                                 .shape = {width_of(from), taps},
                                 .role = Role::matrix,
                                 .spread = 1 / std::sqrt(static_cast<double>(taps)),
                                 .head_axis = 0,
                                 .per_kv_head = per_kv_head});
  return add(
      {.kind = Operation::Kind::convolve, .from = from, .W = W, .width = width_of(from), .taps = taps});
}

Value PartBuilder::gates(std::string_view name, Value write, Value keep, std::string_view site) {
  for (const char* end : {"_rate", "_bias"})
    program_.parameters.push_back({.name = fmt::format("{}.{}{}", branch_.name, name, end),
                                   .shape = {width_of(keep)},
                                   .role = Role::bias,
                                   .head_axis = 0});
  return add({.kind = Operation::Kind::gates,
              .from = write,
              .second = keep,
              .W = fmt::format("{}.{}", branch_.name, name),
              .width = 2 * width_of(write),
              .site = site_named_after(branch_, site),
              .heads = attention().heads});
}

Value PartBuilder::norm(std::string_view name, Value from, const NormSpec& norm, int64_t groups,
                        bool own_gains, bool per_kv_head) {
  if (!norm.there()) return from;
  const std::string stem = fmt::format("{}.{}", branch_.name, name);
  const int64_t size = own_gains ? width_of(from) : width_of(from) / groups;
  const auto add_parameter = [&](const char* letter, Role role) {
    program_.parameters.push_back({.name = stem + letter,
                                   .shape = {size},
                                   .role = role,
                                   .head_axis = own_gains ? 0 : -1,
                                   .per_kv_head = per_kv_head});
  };
  if (norm.gain) add_parameter(".w", Role::gain);
  if (norm.kind == NormKind::layer && norm.bias) add_parameter(".b", Role::bias);
  return add({.kind = Operation::Kind::norm,
              .from = from,
              .W = stem,
              .width = width_of(from),
              .norm = norm,
              .groups = groups});
}

Value PartBuilder::attend(Value q, Value k, Value v, Value gates) {
  return add({.kind = Operation::Kind::attend,
              .from = q,
              .second = k,
              .third = v,
              .fourth = gates,
              .width = attention().heads * attention().d_v});
}

Value PartBuilder::share(Value scores, const Sharing& sharing) {
  Operation o{.kind = Operation::Kind::share, .from = scores, .width = width_of(scores)};
  o.sharing = sharing;
  return add(std::move(o));
}

Value PartBuilder::experts(Value from, Value shares, const Experts& how) {
  const int64_t in = width_of(from);
  const auto expert = [&](const std::string& name, int64_t hidden, bool biased, bool on_demand) {
    const auto map = [&](const char* letter, int64_t rows, int64_t columns) {
      const double spread = 1 / std::sqrt(static_cast<double>(columns));
      const auto put = [&](const char* kind, std::vector<int64_t> shape, Role role) {
        program_.parameters.push_back({.name = fmt::format("{}.{}.{}_{}", branch_.name, name, kind, letter),
                                       .shape = std::move(shape),
                                       .role = role,
                                       .spread = spread,
                                       .on_demand = on_demand});
      };
      put("W", {rows, columns}, Role::matrix);
      if (biased) put("b", {rows}, Role::bias);
    };
    map("in", hidden, in);
    if (how.gated) map("gate", hidden, in);
    map("out", width_, hidden);
  };
  for (int64_t e = 0; e < width_of(shares); ++e)
    expert(fmt::format("experts.{}", e), mlp().width, how.biased, true);
  if (how.always > 0) expert("shared", how.always, false, false);
  Operation o{
      .kind = Operation::Kind::experts, .from = from, .second = shares, .W = branch_.name, .width = width_};
  o.activation = mlp().activation;
  o.other = how.other;
  o.gated = how.gated;
  o.biased = how.biased;
  o.always = how.always;
  o.third = how.always_share;
  return add(std::move(o));
}

Value PartBuilder::beside(Value shared, Value own, int64_t heads) {
  return add({.kind = Operation::Kind::beside,
              .from = shared,
              .second = own,
              .width = heads * width_of(shared) + width_of(own),
              .groups = heads});
}

void PartBuilder::show(Value value, std::string_view site, int64_t heads) {
  Operation& o = program_.operations[static_cast<size_t>(value - kFirstMade)];
  o.site = site_named_after(branch_, site);
  o.heads = heads;
}

std::string PartBuilder::bias_parameter(std::string_view name, int64_t size) {
  const std::string full = fmt::format("{}.{}", branch_.name, name);
  program_.parameters.push_back({.name = full, .shape = {size}, .role = Role::bias});
  return full;
}

void PartBuilder::parameter(std::string_view name, std::vector<int64_t> shape, int head_axis, double spread) {
  program_.parameters.push_back({.name = fmt::format("{}.{}", branch_.name, name),
                                 .shape = std::move(shape),
                                 .role = Role::matrix,
                                 .spread = spread,
                                 .head_axis = head_axis});
}

// Matrices first, then biases, then what belongs to no linear map: Q, K and V lie side by side, so that one
// product can serve all three.
Program PartBuilder::take() {
  const auto rank = [](const Parameter& p) { return p.role == Role::bias ? 1 : p.shape.size() == 2 ? 0 : 2; };
  std::stable_sort(program_.parameters.begin(), program_.parameters.end(),
                   [&](const Parameter& a, const Parameter& b) { return rank(a) < rank(b); });
  return std::move(program_);
}

}  // namespace rankscope
