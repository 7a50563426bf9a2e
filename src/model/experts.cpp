#include "model/experts.h"

#include <fmt/format.h>

#include <limits>

#include "tensors/operations.h"

namespace rankscope {
namespace {

// The scores that decide who is taken, -inf for experts outside the groups that a token has chosen.
at::Tensor choice_of(const at::Tensor& shares, const Sharing& s, const Weights& weights) {
  at::Tensor choice = s.correction.empty() ? shares : shares + weights.get(s.correction);
  if (s.groups == 1) return choice;
  const at::Tensor grouped = choice.unflatten(-1, {s.groups, choice.size(-1) / s.groups});
  const at::Tensor best = std::get<0>(grouped.topk(2, -1)).sum(-1);  // [N, groups]
  const at::Tensor chosen = std::get<1>(best.topk(s.active_groups, -1));
  const at::Tensor closed = at::ones_like(best, at::kBool).scatter(-1, chosen, false).unsqueeze(-1);
  return grouped.masked_fill(closed, -std::numeric_limits<double>::infinity()).flatten(-2);
}

at::Tensor hidden_of(const at::Tensor& x, const Expert& e, const Operation& o) {
  const at::Tensor in = at::linear(x, e.W_in, e.b_in);
  if (!o.gated) return apply_activation(in, o.activation, false);
  const at::Tensor gate = apply_activation(at::linear(x, e.W_gate, e.b_gate), o.activation, false);
  return apply_activation(in, o.other, false) * gate;
}

at::Tensor written_by(const at::Tensor& x, const Expert& e, const Operation& o) {
  return at::linear(hidden_of(x, e, o), e.W_out, e.b_out);
}

std::string expert_name(int64_t e) { return fmt::format("experts.{}", e); }

}  // namespace

at::Tensor shares_of(const at::Tensor& scores, const Sharing& s, const Weights& weights) {
  at::Tensor shares;
  if (!s.sigmoid && s.normed && s.correction.empty() && s.groups == 1) {
    // The softmax over those taken alone: the same as norming their share of all, without the detour.
    const auto [largest, which] = at::topk(scores, s.active, -1);
    shares = at::zeros_like(scores).scatter(-1, which, at::softmax(largest, -1));
  } else {
    const at::Tensor all = s.sigmoid ? at::sigmoid(scores) : at::softmax(scores, -1);
    const at::Tensor which = std::get<1>(choice_of(all, s, weights).topk(s.active, -1));
    at::Tensor taken = all.gather(-1, which);
    if (s.normed) taken = taken / (taken.sum(-1, true) + 1e-20);
    shares = at::zeros_like(scores).scatter(-1, which, taken);
  }
  if (s.scale != 1.0) shares = shares * s.scale;
  if (!s.off.empty()) shares = shares.index_fill(-1, at::tensor(s.off, at::kLong).to(shares.device()), 0.0);
  return shares;
}

Expert expert_of(const Operation& o, const Weights& weights, const std::string& name) {
  const std::string stem = fmt::format("{}.{}.", o.W, name);
  const auto map = [&](const char* letter) { return weights.fetch(stem + "W_" + letter); };
  const auto bias = [&](const char* letter) {
    return o.biased && name != "shared" ? weights.fetch(stem + "b_" + letter) : at::Tensor();
  };
  Expert e{map("in"), bias("in"), {}, {}, map("out"), bias("out")};
  if (o.gated) e.W_gate = map("gate"), e.b_gate = bias("gate");
  return e;
}

void for_each_taken(
    const Operation& o, const at::Tensor& shares, const at::Tensor& always,
    const std::function<void(const std::string&, const at::Tensor&, const at::Tensor&)>& each) {
  const at::Tensor taken = shares != 0;
  const at::Tensor any = taken.any(0).cpu();
  for (int64_t e = 0; e < shares.size(1); ++e) {
    if (!any[e].item<bool>()) continue;
    const at::Tensor tokens = taken.select(1, e).nonzero().squeeze(1);
    each(expert_name(e), tokens, shares.select(1, e).index_select(0, tokens));
  }
  if (o.always > 0)
    each("shared", at::arange(shares.size(0), shares.options().dtype(at::kLong)),
         always.defined() ? always.squeeze(1) : always);
}

at::Tensor run_experts(const at::Tensor& x, const at::Tensor& shares, const at::Tensor& always,
                       const Operation& o, const Weights& weights, bool dense,
                       const std::function<void(int64_t, const at::Tensor&)>& show) {
  at::Tensor out = at::zeros({x.size(0), o.width}, x.options());
  if (dense) {
    for (int64_t e = 0; e < shares.size(1); ++e)
      out = out + written_by(x, expert_of(o, weights, expert_name(e)), o) * shares.narrow(1, e, 1);
    if (o.always == 0) return out;
    const at::Tensor written = written_by(x, expert_of(o, weights, "shared"), o);
    return out + (always.defined() ? written * always : written);
  }
  const auto add = [&](const std::string& name, const at::Tensor& tokens, const at::Tensor& share) {
    const bool all = name == "shared";
    const at::Tensor written =
        written_by(all ? x : x.index_select(0, tokens), expert_of(o, weights, name), o);
    if (!all && show) show(std::stoll(name.substr(name.find('.') + 1)), written);
    const at::Tensor weighed = share.defined() ? written * share.unsqueeze(1) : written;
    if (all)
      out.add_(weighed);
    else
      out.index_add_(0, tokens, weighed);
  };
  for_each_taken(o, shares, always, add);
  return out;
}

}  // namespace rankscope
