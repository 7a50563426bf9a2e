// Small networks with something planted in them, so that what the verdict should say is known from how they
// were made: tokens that are alike, sinks, idle heads, low ranks, massive channels, and networks with none of
// it.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "bank/planted.h"

namespace rankscope::bank {

/// Tokens of a sample share c times as much as tells them apart: spread 1 / (1 + c^2), units differ by its
/// root in the median. A unit that reads little of what they share differs by more: one of ten by more than 8
/// times as much, so that c is far above the threshold's where nine of ten should differ by next to nothing.
inline Planted alike(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("tokens alike", draw, samples, length);
  const int64_t kind = draw.turn(3);  // healthy, alike but read, collapsed
  const double c = kind == 0   ? draw.uniform(0, 1.5)
                   : kind == 1 ? draw.uniform(4.5, 5.8)
                               : draw.log_uniform(300, 3000);
  copy_first_token(
      p, c * kMark / mark_read(p));  // a norm before makes the whole token as much smaller as its mark
  p.truth = {{"alike 0", kind > 0}, {"unread 0", kind == 2}, {"one direction 0", false}};
  return p;
}

/// A constant of size C is added to every token: they differ as before, but the units see the constant.
inline Planted drowned(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("tokens drowned in a constant", draw, samples, length);
  const bool yes = draw.turn(2) == 1;
  const double size = yes ? draw.log_uniform(500, 3000) : draw.uniform(0, 2);  // as above, one draw of 64
  const at::Tensor constant = draw.normal({kWidth});
  (*p.weights)["blocks.0.attn.b_O"] += size * (constant - constant.mean());
  p.truth = {{"alike 0", false}, {"unread 0", yes}, {"one direction 0", false}};
  return p;
}

/// Words that differ along one direction, or along many.
inline Planted one_direction(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("one direction", draw, samples, length);
  const bool yes = draw.turn(2) == 1;
  if (yes) {
    const at::Tensor constant = draw.normal({kWidth}), along = draw.normal({kWidth});
    const at::Tensor much = draw.normal({kWords, 1}).clamp(-1.5, 1.5);
    const double noise = draw.log_uniform(1e-4, 1e-2);
    (*p.weights)["embed.W_E"] = 2 * (constant - constant.mean()) + 0.3 * much * (along - along.mean()) +
                                noise * draw.normal({kWords, kWidth});
    // Attention adds the same to every token of a sample.
    for (const char* name : {"blocks.0.attn.W_V", "blocks.0.attn.W_O"}) (*p.weights)[name].zero_();
  }
  p.truth = {{"one direction 0", yes}, {"alike 0", false}};
  return p;
}

/// A channel that is M in every token: a norm behind it leaves the others next to nothing. Or in one token of
/// every text, which does not speak for the rest.
inline Planted massive(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("massive channel", draw, samples, length);
  const bool yes = draw.turn(2) == 1;
  const double size = yes ? draw.log_uniform(2000, 20000) : draw.uniform(1, 200);
  const bool one_token = draw.coin();
  at::Tensor channel = (*p.weights)["embed.W_pos"].select(1, 20);
  (one_token ? channel.narrow(0, draw.below(length / 2), 1) : channel).fill_(size);
  p.channels = true;
  p.truth = {{"massive", yes}, {"alike 0", false}};
  if (yes && !one_token) p.truth.emplace_back("unread 0", true);
  return p;
}

/// Heads that look at the first token, the last, a word, a position or delimiters, by known margins.
inline Planted sinks(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("sinks", draw, samples, length);
  const int64_t kind = draw.turn(5);
  const bool causal = p.spec.causal();
  if (kind == 0) mark_position(p, 0, 0);
  if (kind == 1)
    mark_position(p, causal ? length / 2 : length - 1, 0);  // the last key of a causal text is seen once
  if (kind == 2) mark_position(p, 1 + draw.below(length / 2), 0);
  if (kind >= 3) {
    (*p.weights)["embed.W_E"][kMarkedWord] += kMark * marker(0);
    for (Sample& s : p.samples) {
      const auto place = static_cast<size_t>(draw.below(length / 2));
      s.ids[place] = kMarkedWord;
      s.special.assign(s.ids.size(), 0);
      s.special[place] = kind == 4;
    }
  }
  for (int64_t h = 0; h < kHeads; ++h) {
    const bool yes = draw.coin();
    look_at_mark(p, h, 0, yes ? draw.uniform(4.6, 12) : draw.uniform(0, 1.9));
    p.truth.emplace_back(fmt::format("sink L0H{}", h), yes);
    if (!yes) continue;
    const std::string_view on = kind == 0              ? "first"
                                : kind == 3            ? "token"
                                : kind == 4            ? "special"
                                : kind == 1 && !causal ? "last"
                                                       : "position";
    for (const std::string_view one : {"first", "last", "special", "position", "token"})
      p.truth.emplace_back(fmt::format("sink kind L0H{}:{}", h, one), one == on);
  }
  return p;
}

/// Heads that write nothing, a constant, what the output needs, or that could write and look where the same
/// stands in every text.
inline Planted idle(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("idle heads", draw, samples, length);
  p.ablate = true;
  Stored& w = *p.weights;
  mark_position(p, 0, 0);
  for (Sample& s : p.samples) s.ids[0] = kMarkedWord;
  for (int64_t h = 0; h < kHeads; ++h) {
    const int64_t kind = draw.below(5),
                  at = h * kHeadWidth;  // busy, silent, constant, small but needed, dormant
    at::Tensor W_V = w["blocks.0.attn.W_V"].narrow(0, at, kHeadWidth),
               W_O = w["blocks.0.attn.W_O"].narrow(1, at, kHeadWidth);
    if (kind == 1) W_V.zero_();
    if (kind == 2) {  // it carries the mark of the first token, which is the same in every sample
      look_at_mark(p, h, 0, 60);
      W_V.copy_(at::outer(draw.normal({kHeadWidth}), marker(0)));
      W_O.copy_(0.15 * draw.normal({kWidth, kHeadWidth}));
    }
    if (kind == 3 && h == 3) {  // a direction that nobody else writes and the output reads a thousandfold
      W_O.copy_(0.001 * at::outer(marker(3), draw.normal({kHeadWidth})));
      w["unembed.W_U"] += 3000 * at::outer(draw.normal({kWords}), marker(3));
      for (int64_t l = 0; l < 2; ++l) {
        if (l == 0) keep_off(w[block(l, "attn.W_O")].narrow(1, 0, at), marker(3));
        if (l == 1) keep_off(w[block(l, "attn.W_O")], marker(3));
        keep_off(w[block(l, "mlp.W_out")], marker(3));
        for (const char* name : {"attn.b_O", "mlp.b_out"})
          w[block(l, name)] -= marker(3) * w[block(l, name)].dot(marker(3));
      }
    }
    if (kind == 4) look_at_mark(p, h, 0, 60);
    const bool idle = kind == 1 || kind == 2 || kind == 4;
    p.truth.emplace_back(fmt::format("idle L0H{}", h), idle);
    if (idle) p.truth.emplace_back(fmt::format("silent L0H{}", h), kind == 1);
    if (idle) p.truth.emplace_back(fmt::format("dormant L0H{}", h), kind == 4);
  }
  return p;
}

/// Two heads of a layer that do the same.
inline Planted duplicates(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("duplicates", draw, samples, length);
  const bool yes = draw.turn(2) == 1;
  if (yes) {
    for (const char* name : {"W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"}) {
      at::Tensor& t = (*p.weights)[block(0, fmt::format("attn.{}", name))];
      t.narrow(0, kHeadWidth, kHeadWidth).copy_(t.narrow(0, 0, kHeadWidth).clone());
    }
    at::Tensor& W_O = (*p.weights)["blocks.0.attn.W_O"];
    W_O.narrow(1, kHeadWidth, kHeadWidth).copy_(draw.uniform(0.2, 2) * W_O.narrow(1, 0, kHeadWidth).clone());
  }
  for (int64_t h = 0; h < kHeads; ++h) p.truth.emplace_back(fmt::format("duplicate L0H{}", h), yes && h < 2);
  return p;
}

/// QK maps of rank 2 in every head, or of full rank.
inline Planted low_rank(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("low rank", draw, samples, length);
  const bool yes = draw.turn(2) == 1;
  for (int64_t l = 0; l < 2; ++l)
    for (const char* name : {"attn.W_Q", "attn.W_K"}) {
      at::Tensor& W = (*p.weights)[block(l, name)];
      W *= 2;
      if (yes)
        for (int64_t h = 0; h < kHeads; ++h)
          W.narrow(0, h * kHeadWidth, kHeadWidth)
              .copy_(draw.normal({kHeadWidth, 2}).matmul(draw.normal({2, kWidth})) * 0.15);
    }
  p.rank = {"qk=2"};
  p.truth = {{"keeps rank:qk=2", yes}};
  return p;
}

/// Attention alone sends every token to the same place, so the skip holds the rank up; positions that hold
/// nothing do not.
inline Planted held_up(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("skips", draw, samples, length);
  const bool yes = draw.turn(2) == 1;
  if (yes) {
    copy_first_token(p, draw.uniform(0.1, 0.5));
    p.off = {"attention-skip"};
    p.truth = {{"holds -attention-skip", true}};
  } else {
    (*p.weights)["embed.W_pos"] = draw.log_uniform(1e-4, 1e-2) * draw.normal({length, kWidth});
    p.off = {"position"};
    p.truth = {{"holds -position", false}};
  }
  return p;
}

/// Tokens that are alike or not, and an output that reads what tells them apart or not.
inline Planted used(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("use", draw, samples, length);
  p.use = true;
  Stored& w = *p.weights;
  const int64_t kind = draw.turn(4);  // healthy, collapsed, alike but read, different but unread
  const at::Tensor e = marker(3);
  if (kind == 1) copy_first_token(p, draw.log_uniform(20, 300) * kMark / mark_read(p));
  if (kind == 2) {
    const double c = draw.log_uniform(4.5, 30);
    w["embed.W_E"] += at::outer(draw.normal({kWords}), e);
    copy_first_token(p, c * kMark / mark_read(p));
    w["blocks.0.attn.W_V"] -= at::outer(e, e);
    reserve(p, e, false);
    w["unembed.W_U"] += 4 * c * at::outer(draw.normal({kWords}), e);
  }
  if (kind == 3) {
    sign_samples(p, draw, 20, e);
    reserve(p, e, true);
    for (int64_t l = 0; l < 2; ++l)
      for (const char* name : {"attn.W_O", "mlp.W_out"}) w[block(l, name)] *= 0.05;
    w["unembed.W_U"] = draw.uniform(0.3, 0.8) * at::outer(draw.normal({kWords}), e);
  }
  p.fisher = true;
  const bool unread = kind == 1 || kind == 3;
  p.truth = {{"alike 0", kind == 1 || kind == 2}, {"unused 0", unread}, {"unseen 0", unread}};
  return p;
}

/// Weak heads that tell the output which of two kinds of text it reads. Where a saturated unit listens, one
/// of them is as good as both, and without both the output is lost; where the output adds them up, costs add
/// up and nothing more.
inline Planted stand_ins(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("stand-ins", draw, samples, length);
  p.ablate = true;
  Stored& w = *p.weights;
  const bool yes = draw.turn(2) == 1;
  const at::Tensor kind = marker(2), told = marker(3);
  const double small = draw.uniform(0.001, 0.004), heard = small * mark_read(p);
  sign_samples(p, draw, kMark, kind);
  reserve(p, told, true);
  const int64_t weak = yes ? 2 : kHeads;
  for (int64_t h = 0; h < weak; ++h) {
    const int64_t at = h * kHeadWidth;
    for (const char* name : {"attn.W_Q", "attn.W_K", "attn.W_V", "attn.b_Q", "attn.b_K", "attn.b_V"})
      w[block(0, name)].narrow(0, at, kHeadWidth).zero_();
    w["blocks.0.attn.W_V"][at] = kind;
    w["blocks.0.attn.W_O"].narrow(1, at, kHeadWidth).zero_();
    w["blocks.0.attn.W_O"].select(1, at).copy_(small * told);
  }
  w["unembed.W_U"] -= at::outer(at::mv(w["unembed.W_U"], told), told);
  if (yes) {
    for (int64_t unit = 0; unit < 2; ++unit) {  // one step: 4 above, 0 below
      w["blocks.0.mlp.W_in"][unit] = 40 / heard * told;
      w["blocks.0.mlp.b_in"][unit] = unit == 0 ? 2.0 : -2.0;
      w["blocks.0.mlp.W_out"].select(1, unit).copy_((unit == 0 ? 1.0 : -1.0) * marker(1));
    }
  } else {
    w["unembed.W_U"] += 0.035 / heard * at::outer(draw.normal({kWords}), told);
  }
  for (int64_t a = 0; a < weak; ++a)
    for (int64_t b = a + 1; b < weak; ++b)
      p.truth.emplace_back(fmt::format("stand-ins L0H{}+L0H{}", a, b), yes);
  return p;
}

/// Heads whose scores hang on one feature, or on as many as they start with.
inline Planted scores(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("scores", draw, samples, length);
  p.null = true;
  for (int64_t h = 0; h < kHeads; ++h) {
    const bool yes = draw.coin();
    const double noise = draw.log_uniform(1e-3, 0.1);
    for (const char* name : {"attn.W_Q", "attn.W_K"}) {
      at::Tensor W = (*p.weights)[block(0, name)].narrow(0, h * kHeadWidth, kHeadWidth);
      if (yes)
        W.copy_(noise * W +
                at::outer(draw.normal({kHeadWidth}), draw.normal({kWidth})) / std::sqrt(double(kWidth)));
    }
    (*p.weights)["blocks.0.attn.b_Q"].narrow(0, h * kHeadWidth, kHeadWidth).zero_();
    p.truth.emplace_back(fmt::format("low scores L0H{}", h), yes);
  }
  return p;
}

/// Heads whose OV map is of rank one but for little, or as they start. Of eight dimensions a tenth is less
/// than one, so the threshold is set where a map of rank one is well below it.
inline Planted ov_maps(Draw& draw, int64_t samples, int64_t length) {
  Planted p = healthy("OV maps", draw, samples, length);
  p.maps = true;
  p.limits.set("low_rank", 0.4);
  for (int64_t h = 0; h < kHeads; ++h) {
    const bool yes = (draw.turn(2) + h) % 2 == 1;
    const double noise = draw.log_uniform(1e-4, 0.02);
    at::Tensor W = (*p.weights)["blocks.0.attn.W_V"].narrow(0, h * kHeadWidth, kHeadWidth);
    if (yes)
      W.copy_(noise * W +
              at::outer(draw.normal({kHeadWidth}), draw.normal({kWidth})) / std::sqrt(double(kWidth)));
    p.truth.emplace_back(fmt::format("low OV L0H{}", h), yes);
  }
  return p;
}

using Family = Planted (*)(Draw&, int64_t, int64_t);
/// All of them first, then again those that plant few statements a network: with 6,400 networks each
/// statement is planted at least 300 times both ways.
inline const std::vector<Family>& families() {
  static const std::vector<Family> all{
      alike,   drowned,   one_direction, massive,    sinks,    idle,       duplicates, low_rank,
      held_up, used,      stand_ins,     scores,     ov_maps,  alike,      drowned,    one_direction,
      massive, sinks,     idle,          duplicates, low_rank, held_up,    used,       stand_ins,
      scores,  alike,     one_direction, massive,    idle,     duplicates, low_rank,   held_up,
      used,    stand_ins, one_direction, massive,    low_rank, held_up,    used,       stand_ins};
  return all;
}

}  // namespace rankscope::bank
