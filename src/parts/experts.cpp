// A mixture of experts (Mixtral, Qwen3-MoE, Qwen3-Next, gpt-oss, DeepSeek): a router scores the experts, each
// token takes the `active` best, weighed by their shares, and every expert is a gated or plain MLP of its
// own. One more may serve every token.
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "parts/program.h"

namespace rankscope {
namespace {

Sharing sharing_of(PartBuilder& b, int64_t experts) {
  const auto whole = [&](const char* name) { return static_cast<int64_t>(b.option(name)); };
  Sharing s{.active = whole("active"),
            .sigmoid = whole("sigmoid") != 0,
            .normed = whole("normed") != 0,
            .groups = whole("groups"),
            .active_groups = whole("active_groups"),
            .scale = b.mlp().share_scale,
            .off = b.mlp().experts_off};
  if (s.active > experts)
    throw usage_error(fmt::format("a token cannot take {} of {} experts", s.active, experts))
        .hint("active of at most experts");
  if (experts % s.groups != 0 || s.active_groups > s.groups || (s.groups > 1 && experts / s.groups < 2) ||
      s.active > experts / s.groups * s.active_groups)
    throw usage_error(
        fmt::format("{} experts in {} groups, of which a token chooses {} and takes {}, do not fit", experts,
                    s.groups, s.active_groups, s.active))
        .hint("groups of equal size, and fewer experts taken than the chosen groups hold");
  for (const int64_t e : s.off)
    if (e >= experts)
      throw usage_error(fmt::format("there is no expert {}: there are {}, counted from 0", e, experts));
  return s;
}

void build_experts(PartBuilder& b) {
  const auto experts = static_cast<int64_t>(b.option("experts"));
  Sharing sharing = sharing_of(b, experts);
  const double spread = 1 / std::sqrt(static_cast<double>(b.width()));
  const Value scores = b.linear(
      "router", kInput, experts,
      {.bias = b.option("router_bias") != 0, .spread = spread, .bias_spread = spread, .site = "hook_router"});
  if (b.option("correction") != 0) sharing.correction = b.bias_parameter("router_correction", experts);
  const bool limited = b.option("limited") != 0;
  const Value shares = b.share(scores, sharing);
  b.show(shares, "hook_shares");
  const auto always = static_cast<int64_t>(b.option("shared"));
  Value always_share = -1;
  if (always > 0 && b.option("shared_gate") != 0)
    always_share = b.activation(b.linear("shared_gate", kInput, 1, {.spread = spread}), Activation::sigmoid);
  b.experts(kInput, shares,
            {.gated = b.option("gated") != 0,
             .biased = b.option("biased") != 0,
             .other = limited ? Activation::one_plus_7 : Activation::identity,
             .always = always,
             .always_share = always_share});
}

}  // namespace

extern const Part part_experts{
    .name = "experts",
    .summary = "several MLPs, of which each token takes the few that a router scores highest",
    .kind = Part::Kind::mlp,
    .options = {{"experts", 4, 1, 1024, "how many there are"},
                {"active", 2, 1, 1024, "how many a token takes"},
                {"gated", 1, 0, 1, "whether each is a gated MLP"},
                {"normed", 1, 0, 1, "whether the shares of those taken sum to one"},
                {"sigmoid", 0, 0, 1, "whether a share is the sigmoid of a score, not the softmax"},
                {"groups", 1, 1, 1024, "experts come in so many groups"},
                {"active_groups", 1, 1, 1024, "and a token chooses so many of them first"},
                {"correction", 0, 0, 1, "whether a learned number per expert is added for the choice alone"},
                {"biased", 0, 0, 1, "whether each has biases"},
                {"router_bias", 0, 0, 1, "whether the router has a bias"},
                {"limited", 0, 0, 1, "whether what the gate multiplies is 1 + x, x between -7 and 7"},
                {"shared", 0, 0, 1 << 22, "width of one more that every token takes whole"},
                {"shared_gate", 0, 0, 1, "whether that one is weighed by a sigmoid of the token"}},
    .sites = {{"mlp.hook_router", "the router's score of every expert"},
              {"mlp.hook_shares", "how much a token takes of every expert, 0 where it takes none"}},
    .build = build_experts};

}  // namespace rankscope
