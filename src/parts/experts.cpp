// A mixture of experts (Mixtral, Qwen-MoE): a router scores the experts, each token takes the `active` best,
// weighed by the softmax over these, and every expert is a gated or plain MLP of its own.
//
// Together the experts are one wide MLP whose hidden layer is multiplied by the shares: expert e has rows
// [e f, (e + 1) f) of W_in and W_gate and the same columns of W_out. Every expert is computed for every
// token; those a token does not take are multiplied by zero.
#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "parts/program.h"

namespace rankscope {
namespace {

void build(PartBuilder& b) {
  const auto experts = static_cast<int64_t>(b.option("experts")),
             active = static_cast<int64_t>(b.option("active"));
  if (active > experts)
    throw usage_error(fmt::format("a token cannot take {} of {} experts", active, experts))
        .hint("active of at most experts");
  const int64_t hidden = experts * b.mlp().width;
  const double in = 1 / std::sqrt(static_cast<double>(b.width()));
  const auto map = [&](const char* letter, int64_t width, const char* site) {
    return b.linear(letter, kInput, width, {.spread = in, .site = site});
  };
  const Value scores = map("router", experts, "hook_router");
  Value h = map("in", hidden, b.option("gated") != 0 ? "" : "hook_pre");
  if (b.option("gated") != 0)
    h = b.multiply(h, b.activation(map("gate", hidden, "hook_pre"), b.mlp().activation));
  else
    h = b.activation(h, b.mlp().activation);
  h = b.multiply(h, b.share(scores, active, b.mlp().width), "hook_post");
  b.linear("out", h, b.width(), {.spread = 1 / std::sqrt(static_cast<double>(b.mlp().width))});
}

}  // namespace

extern const Part part_experts{
    .name = "experts",
    .summary = "several MLPs, of which each token takes the few that a router scores highest",
    .kind = Part::Kind::mlp,
    .options = {{"experts", 4, 1, 1024, "how many there are"},
                {"active", 2, 1, 1024, "how many a token takes"},
                {"gated", 1, 0, 1, "whether each is a gated MLP"}},
    .sites = {{"mlp.hook_router", "the router's score of every expert"}},
    .build = build};

}  // namespace rankscope
