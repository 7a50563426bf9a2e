// Where tokens become alike, by numbers that do not change when the network is written down in another way:
// how far the tokens of a sample differ beside the corpus (spread), whether the layer's units notice
// (unit_sd_rel_p90) and the output needs it (use, where it was measured), and in how many directions
// (unit_rank). docs/CONVENTIONS.md argues why they do not change.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "verdict/alike_samples.h"
#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {

/// What is known of the tokens at one place.
struct Seen {
  int layer = 0;
  std::string where;  // "in the MLP of layer 3", "after layer 5", "at the final norm"
  const Row *spread = nullptr, *read = nullptr, *rank = nullptr, *baseline = nullptr;
  const Row *rank_baseline = nullptr, *directions_baseline = nullptr;
  const Row* use = nullptr;         // decides whether tokens are read; without it the units do
  const Row* left = nullptr;        // the residual of what the block leaves
  const Row* left_out = nullptr;    // ... and of the massive channels that it leaves out
  const Row* directions = nullptr;  // of the stream, which nothing reads channel by channel
  bool units = false;               // of an MLP
};

/// How far outputs differ at all; nullptr where it was not measured.
const Row* range_of(const Case& c) { return c.evidence.any("full", "output_range"); }

double least_range(const Case& c) {
  return c.limit(c.spec.output.kind != HeadKind::none ? "epsilon" : "epsilon_error");
}

/// Whether they do. Where they hardly do, what the output needs is a ratio of next to nothing.
Side outputs_differ(const Case& c) {
  const Row* range = range_of(c);
  return range == nullptr ? Side::above : side(*range, least_range(c));
}

/// " (3.8 nats)": how much a share of it is; nothing where it is a share itself.
std::string in_nats(const Case& c) {
  const Row* range = range_of(c);
  return range == nullptr || c.spec.output.kind == HeadKind::none
             ? ""
             : fmt::format(" ({} nats)", number(range->value));
}

/// The MLPs, the blocks that have none, and the end of the network.
std::vector<Seen> places(const Case& c, std::string_view variant) {
  std::vector<Seen> out;
  const bool outputs = outputs_differ(c) == Side::above;
  const auto look = [&](const std::string& site, int layer, const std::string& where, bool units) {
    // A gated MLP reads with its gate and with what the gate multiplies: what one of them tells apart is
    // read.
    const auto of = [&](std::string_view v, std::string_view metric, std::string_view tokens) {
      const Row *own = c.evidence.at_site(v, metric, site, tokens),
                *gated = units ? c.evidence.at_site(v, metric, site + "_linear", tokens) : nullptr;
      return gated != nullptr && (own == nullptr || gated->value > own->value) ? gated : own;
    };
    Seen s{layer, where, of(variant, "spread", "all"), nullptr, of(variant, "unit_rank", "content"), nullptr};
    for (const Row* r : c.evidence.all(variant, "use"))
      if (outputs && r->layer == layer && layer < c.path.final_layer) s.use = r;
    // Only an MLP's units have a zero of their own; a channel's is a matter of the norm's bias.
    if (units) s.read = of(variant, "unit_sd_rel_p90", "content");
    s.units = units;
    if (!units) s.directions = of(variant, "effective_rank_centered", "content");
    if (!c.evidence.baseline().empty()) {
      s.baseline = of(c.evidence.baseline(), "spread", "all");
      s.rank_baseline = of(c.evidence.baseline(), "unit_rank", "content");
      if (!units) s.directions_baseline = of(c.evidence.baseline(), "effective_rank_centered", "content");
    }
    const std::string block =
        fmt::format("blocks.{}.hook_resid_post", std::min(layer, c.path.final_layer - 1));
    for (const char* metric : {"residual_fro_rel_normed", "residual_fro_rel_trimmed"})
      if (s.left == nullptr) s.left = c.evidence.at_site(variant, metric, block, "content");
    // --layers may have left that block out; what the final norm gave is measured all the same.
    if (s.left == nullptr && layer == c.path.final_layer)
      s.left = c.evidence.at_site(variant, "residual_fro_rel", site, "content");
    s.left_out = c.evidence.at_site(variant, "normed_left_out", block, "content");
    if (s.spread == nullptr && s.read == nullptr && s.rank == nullptr) return false;
    out.push_back(s);
    return true;
  };
  for (int l = 0; l < c.path.final_layer; ++l) {
    if (!look(fmt::format("blocks.{}.mlp.hook_pre", l), l, fmt::format("in the MLP of layer {}", l), true))
      look(fmt::format("blocks.{}.hook_resid_post", l), l, fmt::format("after layer {}", l), false);
  }
  if (!look("ln_final.hook_normalized", c.path.final_layer, "at the final norm", false) &&
      c.path.final_layer > 0 && !out.empty() && out.back().read != nullptr)
    look(fmt::format("blocks.{}.hook_resid_post", c.path.final_layer - 1), c.path.final_layer,
         fmt::format("after layer {}", c.path.final_layer - 1), false);
  return out;
}

/// Low by itself, and low beside the baseline where there is one.
Side low_beside(const Case& c, const Row& r, const Row* baseline) {
  const Side low = side(r, c.limit("spread"));
  if (baseline == nullptr || low == Side::above) return low;
  const double ratio = c.limit("collapse_ratio");
  const Side relative = side(r.value, std::hypot(r.stderr_, ratio * baseline->stderr_),
                             std::min(r.n, baseline->n), ratio * baseline->value);
  return low == relative || relative == Side::above ? relative : Side::unclear;
}

std::string list_places(const std::vector<const Seen*>& all) {
  std::vector<int> mlps, after;
  std::vector<std::string> parts;
  bool final = false;
  for (const Seen* s : all) {
    if (s->where.starts_with("in the MLP")) mlps.push_back(s->layer);
    if (s->where.starts_with("after")) after.push_back(std::stoi(s->where.substr(12)));
    final = final || s->where == "at the final norm";
  }
  if (!mlps.empty())
    parts.push_back(fmt::format("in the MLP{} of {}", mlps.size() > 1 ? "s" : "", layers_text(mlps)));
  if (!after.empty()) parts.push_back(fmt::format("after {}", layers_text(after)));
  if (final) parts.emplace_back("at the final norm");
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

enum class Kind {
  healthy,
  collapsed,
  alike,
  outweighed,
  unneeded,
  needed,
  unread,
  unused,
  usual,
  faint,
  unclear
};

/// Whether the tokens at a place differ by more than next to nothing of their size, however far samples do.
Side apart(const Case& c, const Seen& s) {
  const double limit = c.limit("collapse");
  // With gain and bias it says nothing of their size.
  if (s.left == nullptr || s.left->metric == "residual_fro_rel") return Side::unclear;
  if (s.left_out != nullptr && side(*s.left_out, limit) == Side::above) return Side::above;
  return side(*s.left, limit);
}

// What tells these tokens apart is rounding, and spread is a ratio of roundings. Nine units of ten may read
// no more than that where tokens differ: the residual has to say so, too.
bool only_rounding(const Case& c, const Seen& s) {
  const auto rounding = [&](const Row& r) { return r.n > 1 && r.value < c.floor(); };
  const auto none_or_rounding = [&](const Row* r) { return r == nullptr || rounding(*r); };
  return s.left != nullptr && rounding(*s.left) && none_or_rounding(s.left_out) && none_or_rounding(s.read);
}

Kind kind_of(const Case& c, const Seen& s) {
  if (only_rounding(c, s)) return Kind::collapsed;
  // Not one channel differs between any two tokens of a sample.
  if (s.spread->value == 0 && !s.units) return Kind::collapsed;
  // No unit differs between any two tokens, which do differ in the stream: the MLP reads none of it.
  if (s.spread->value == 0 && s.units && s.left != nullptr && s.left->value > c.floor()) return Kind::unread;
  const Side low = low_beside(c, *s.spread, s.baseline);
  const Side units = s.read != nullptr ? side(*s.read, c.limit("read")) : Side::unclear,
             read = s.use != nullptr ? side(*s.use, c.limit("use")) : units,
             told = s.units ? units : apart(c, s);  // apart by what there is to tell it
  // Units that read what a sample has in common alone say nothing of its tokens.
  const bool small = side(*s.spread, c.limit("spread")) == Side::below;
  if (small && units == Side::below && apart(c, s) == Side::above) return Kind::unread;
  if (low == Side::above && small) return Kind::usual;
  if (low == Side::unclear || (s.use != nullptr && read == Side::unclear)) return Kind::unclear;
  // Without units nothing says whether a difference that is next to nothing is read.
  if (low == Side::above && !s.units && s.use == nullptr && told == Side::below &&
      !(s.layer == c.path.final_layer && range_of(c) != nullptr && outputs_differ(c) == Side::above))
    return Kind::faint;
  if (low == Side::below && told == Side::above)
    return s.use != nullptr && read == Side::below ? Kind::unneeded : Kind::outweighed;
  if (low == Side::below)
    return read == Side::below ? Kind::collapsed : s.use != nullptr ? Kind::needed : Kind::alike;
  if (s.read != nullptr && read == Side::unclear) return Kind::unclear;
  return read != Side::below ? Kind::healthy : s.use != nullptr ? Kind::unused : Kind::unread;
}

bool alike(Kind k) {
  return k == Kind::collapsed || k == Kind::alike || k == Kind::outweighed || k == Kind::unneeded ||
         k == Kind::needed;
}

const Seen& least(const std::vector<const Seen*>& all, const Row* Seen::*row) {
  const Seen* best = all.front();
  for (const Seen* s : all)
    if (s->*row != nullptr && (best->*row == nullptr || (s->*row)->value < (best->*row)->value)) best = s;
  return *best;
}

std::string numbers(const Case& c, const Seen& s) {
  if (only_rounding(c, s))
    return fmt::format("their residual is {} {}", c.residual_text(s.left->value), s.where);
  if (kind_of(c, s) == Kind::faint)
    return fmt::format("their normed residual is {} {}, threshold {}", with_error(*s.left), s.where,
                       number(c.limit("collapse")));
  std::string text = fmt::format("spread {} {}, threshold {}{}", with_error(*s.spread), s.where,
                                 number(c.limit("spread")), c.beside(s.baseline));
  if (s.use != nullptr)
    text += fmt::format(
        "; their mean in their place costs {} of what one output for the whole corpus does{}, "
        "threshold {}",
        with_error(*s.use), in_nats(c), number(c.limit("use")));
  if (s.read != nullptr && (s.use == nullptr || low_beside(c, *s.spread, s.baseline) == Side::below))
    text += fmt::format("; nine of ten units differ by {} of what they read or less, threshold {}",
                        with_error(*s.read), number(c.limit("read")));
  return text;
}

/// What no sentence of its own was made for goes with the last one.
void claim_rest(Case& c, const std::vector<Claim>& rest) {
  std::vector<Claim>& last = c.findings.back().claims;
  last.insert(last.end(), rest.begin(), rest.end());
}

/// Layers whose attention reads the same from every token, though tokens differ: a gain may be zero.
std::vector<int> blind_attention(const Case& c) {
  std::vector<int> out;
  for (const Place& p : c.path.places) {
    const Row *read = c.evidence.at_site("full", "residual_fro_rel_trimmed", p.site, "content"),
              *size = c.evidence.at_site("full", "residual_fro", p.site, "content");
    const Row* there = p.layer == 0 ? nullptr : c.residual("full", p);
    if (!c.path.pre_norm || p.layer == c.path.final_layer || there == nullptr) continue;
    // Of zeros there is no share, and nothing differs.
    const bool none = read != nullptr ? read->n > 1 && read->value < c.floor()
                                      : size != nullptr && size->n > 1 && size->value == 0;
    if (none && there->value > c.floor()) out.push_back(p.layer);
  }
  return out;
}

/// Units of an MLP are what reads tokens; channels are not, and many that hold next to nothing may move
/// together: there the tokens themselves have to lie along one direction, however the stream is turned.
Side along_one_direction(const Case& c, bool units, const Row* rank, const Row* directions) {
  const double limit = c.limit("dimension");
  const Side at = rank == nullptr ? Side::above : side(*rank, limit);
  if (units || at == Side::above) return at;
  return directions != nullptr && side(*directions, limit) == Side::below ? at : Side::above;
}
Side along_one_direction(const Case& c, const Seen& s) {
  return along_one_direction(c, s.units, s.rank, s.directions);
}

/// Samples on both sides of the threshold, and a gap between them. Whether there were any.
bool collapse_in_some(Case& c, const std::vector<const Seen*>& standing) {
  SomeSamples worst;
  const Seen* place = nullptr;
  std::vector<int> layers;
  bool equal = true;
  for (const Seen* s : standing) {
    if (s->left == nullptr || s->left->metric == "residual_fro_rel") continue;
    const SomeSamples some = alike_in_some(c, {*s->left, s->left_out, s->read, s->layer});
    if (some.alike == 0 || some.alike == some.all) continue;
    if (some.most > c.limit("collapse_ratio") * some.least_other) continue;
    const int layer = std::min(s->layer, c.path.final_layer - 1);
    if (layers.empty() || layers.back() != layer) layers.push_back(layer);
    equal = equal && (worst.alike == 0 || worst.alike == some.alike);
    if (some.alike > worst.alike) worst = some, place = s;
  }
  if (layers.empty()) return false;
  const int at = std::min(place->layer, c.path.final_layer - 1);
  Finding& f = c.say(
      "collapse",
      fmt::format("in {}{} of {} samples the tokens are nearly all alike after {}: their {} is {} or less{}, "
                  "of the others {} or more, threshold {}",
                  equal ? "" : "up to ", worst.alike, worst.all, layers_text(layers), c.residual_name(),
                  c.residual_text(worst.most), layers.size() > 1 ? fmt::format(" after layer {}", at) : "",
                  number(worst.least_other), number(c.limit("collapse"))));
  about(f, *place->left, c.limit("collapse"));
  f.value = worst.most;
  for (const int layer : layers)
    f.claims.push_back({fmt::format("some alike {}", layer), Claim::Answer::yes});
  return true;
}

/// What --off tokens was asked for, told also where nothing is amiss.
void needed_by_output(Case& c, const std::vector<Seen>& all) {
  if (const Side differ = outputs_differ(c); differ != Side::above) {
    const Row& range = *range_of(c);
    const bool known = differ == Side::below;
    about(c.say("collapse",
                fmt::format("{}: one output for the whole corpus costs {}, epsilon {}; what it needs of what "
                            "tells tokens apart says nothing",
                            known ? "the output is nearly the same at every token"
                                  : "not known whether the output differs from token to token",
                            with_error(range), number(least_range(c))),
                known),
          range, least_range(c));
    c.findings.back().claims = {{"same output", answer_of(differ, Side::below)}};
    return;
  }
  std::vector<const Seen*> needed;
  for (const Seen& s : all)
    if (s.use != nullptr && side(*s.use, c.limit("use")) == Side::above) needed.push_back(&s);
  if (needed.empty()) return;
  const auto [low, high] = std::ranges::minmax(needed, {}, [](const Seen* s) { return s->use->value; });
  const std::string numbers = low == high
                                  ? with_error(*low->use)
                                  : fmt::format("from {} (layer {}) to {} (layer {})", with_error(*low->use),
                                                low->layer, with_error(*high->use), high->layer);
  std::string where = list_places(needed);
  if (where.starts_with("in the MLP")) where = "in front of the MLP" + where.substr(10);  // skip included
  about(c.say("collapse", fmt::format("the output needs what tells tokens apart {}: use {}, threshold {}",
                                      where, numbers, number(c.limit("use")))),
        *low->use, c.limit("use"));
  c.findings.back().claims = {{"use", Claim::Answer::yes}};
}

void uniformity(Case& c, const std::vector<Seen>& all) {
  std::map<Kind, std::vector<const Seen*>> by_kind;
  std::map<Kind, std::vector<Claim>> claims;  // a sentence carries those of its own places
  for (const Seen& s : all) {
    const Kind k = kind_of(c, s);
    by_kind[k].push_back(&s);
    const auto claim = [&](std::string_view what, Side yes) {
      claims[k].push_back(
          {fmt::format("{} {}", what, s.layer),
           answer_of(k == Kind::unclear || k == Kind::faint ? Side::unclear : yes, Side::below)});
    };
    const auto is = [](bool yes) { return yes ? Side::below : Side::above; };
    claim("alike", is(alike(k)));
    if (s.use != nullptr) claim("unused", k == Kind::collapsed ? is(true) : side(*s.use, c.limit("use")));
    if (k == Kind::unread || (s.use == nullptr && s.read != nullptr))
      claim("unread", is(k == Kind::collapsed || k == Kind::unread));
  }
  const auto say = [&](Kind k, std::string_view what, std::string_view why, bool known = true) {
    const auto found = by_kind.find(k);
    if (found == by_kind.end()) return;
    const auto by = k == Kind::unread   ? &Seen::read
                    : k == Kind::unused ? &Seen::use
                    : k == Kind::faint  ? &Seen::left
                                        : &Seen::spread;
    const Seen& worst = least(found->second, by);
    Finding& f =
        c.say("collapse",
              fmt::format("{} {}{}: {}", what, list_places(found->second), why, numbers(c, worst)), known);
    if (k == Kind::faint)
      about(f, *worst.left, c.limit("collapse"));
    else
      about(f, *worst.spread, c.limit("spread"), worst.baseline);
    f.layer = worst.layer;
    f.claims = std::exchange(claims[k], {});
  };
  say(Kind::collapsed, "the tokens of a sample have collapsed to one",
      ", and next to nothing there tells them apart");
  say(Kind::alike, "the tokens of a sample are nearly all alike", "");
  // A few samples that lie far from the others are enough for that.
  say(Kind::outweighed, "the tokens of a sample differ by next to nothing beside how far samples differ",
      ", though they are not alike");
  say(Kind::unneeded, "the tokens of a sample differ by next to nothing beside how far samples differ",
      ", and the output hardly needs what tells them apart");
  say(Kind::needed, "the tokens of a sample are nearly all alike",
      ", but the output reads what tells them apart");
  if (std::ranges::any_of(by_kind, [](const auto& k) { return alike(k.first); }))
    if (c.evidence.baseline().empty())
      c.say("collapse",
            "not known whether that is unusual: there is nothing to hold it against; scan with --null or "
            "--baseline DIR",
            false);
  say(Kind::usual, "tokens are much alike",
      fmt::format(", but more than {} times as far apart as in {}", number(c.limit("collapse_ratio")),
                  c.evidence.baseline_name()));
  // A large bias hides what they pass on all the same, so this is no word on what is read behind them.
  say(Kind::unread, "nine units of ten differ by next to nothing between tokens", "");
  say(Kind::unused, "tokens differ, but the output hardly needs it", "");
  say(Kind::unclear, "not known", ", within two standard errors of a threshold; more samples would decide",
      false);
  say(Kind::faint, "not known whether what tells tokens apart is read",
      fmt::format(", where it is next to nothing of their size and no units say so{}",
                  range_of(c) == nullptr ? "; scan with --off tokens" : ""),
      false);
  const std::vector<int> blind = blind_attention(c);
  if (!blind.empty()) {
    Finding& f =
        c.say("collapse",
              fmt::format("tokens differ, but attention reads none of it in {}: the residual of what it "
                          "reads, gain included, is {}",
                          layers_text(blind), c.residual_text(0)));
    for (const int layer : blind) f.claims.push_back({fmt::format("blind {}", layer), Claim::Answer::yes});
  }
  std::vector<const Seen*> standing;
  for (const auto& [kind, seen] : by_kind)
    if (!alike(kind)) standing.insert(standing.end(), seen.begin(), seen.end());
  std::ranges::sort(standing, {}, [](const Seen* s) { return s->layer; });
  const bool some = collapse_in_some(c, standing);
  const bool one_direction = std::any_of(
      all.begin(), all.end(), [&](const Seen& s) { return along_one_direction(c, s) == Side::below; });
  if (by_kind.contains(Kind::healthy) && by_kind.size() == 1)
    about(c.say("collapse", fmt::format("{}: the least is {}",
                                        some ? "of all samples together no layer collapses"
                                        : blind.empty() && !one_direction ? "no layer collapses"
                                                                          : "tokens do not become alike",
                                        numbers(c, least(by_kind[Kind::healthy], &Seen::spread)))),
          *least(by_kind[Kind::healthy], &Seen::spread).spread, c.limit("spread"),
          least(by_kind[Kind::healthy], &Seen::spread).baseline);
  claim_rest(c, claims[Kind::healthy]);
  needed_by_output(c, all);
}

/// Tokens may differ along one direction alone: another collapse, which no residual shows.
void dimension(Case& c, const std::vector<Seen>& all) {
  std::vector<const Seen*> low, usual, unclear;
  std::vector<Claim> claims, ordinary;
  const double limit = c.limit("dimension");
  for (const Seen& s : all) {
    if (s.rank == nullptr) continue;
    const Side at = along_one_direction(c, s);
    const bool as_there = at == Side::below && along_one_direction(c, s.units, s.rank_baseline,
                                                                   s.directions_baseline) == Side::below;
    if (at == Side::below) (as_there ? usual : low).push_back(&s);
    if (at == Side::unclear) unclear.push_back(&s);
    (at == Side::below && !as_there ? claims : ordinary)
        .push_back({fmt::format("one direction {}", s.layer),
                    as_there ? Claim::Answer::no : answer_of(at, Side::below)});
  }
  const auto say = [&](const std::vector<const Seen*>& seen, std::string_view what, bool known) {
    if (seen.empty()) return;
    const Seen& worst = least(seen, &Seen::rank);
    about(c.say("collapse",
                fmt::format("{} {}, each unit over its own deviation: unit_rank {} {}, threshold {}", what,
                            list_places(seen), with_error(*worst.rank), worst.where, number(limit)),
                known),
          *worst.rank, limit);
  };
  // Below 2 the largest share is above a half.
  say(low, "dimensional collapse: most of what is read of tokens' differences lies along one direction",
      true);
  claim_rest(c, claims);
  say(usual,
      fmt::format("as in {}, most of what is read of tokens' differences lies along one direction",
                  c.evidence.baseline_name()),
      true);
  say(unclear, "not known whether most of what is read of tokens' differences lies along one direction",
      false);
  claim_rest(c, ordinary);
}

/// The same as the output sees it, to first order: where its Fisher metric was pulled back (--off fisher).
void seen_by_output(Case& c) {
  const std::vector<const Row*>& rows = c.evidence.all("full", "spread_fisher");
  if (rows.empty()) return;
  const double limit = c.limit("spread");
  std::vector<int> low, unclear;
  std::vector<Claim> claims;
  const Row* least = rows.front();
  for (const Row* r : rows) {
    const Side at = side(*r, limit);
    if (at == Side::below) low.push_back(r->layer);
    if (at == Side::unclear) unclear.push_back(r->layer);
    if (r->value < least->value) least = r;
    claims.push_back({fmt::format("unseen {}", r->layer), answer_of(at, Side::below)});
  }
  std::sort(low.begin(), low.end());
  std::sort(unclear.begin(), unclear.end());
  const std::string text = fmt::format("spread_fisher {} in front of the MLP of layer {}, threshold {}",
                                       with_error(*least), least->layer, number(limit));
  const size_t first = c.findings.size();
  if (!low.empty())
    about(c.say("collapse", fmt::format("to first order, of the differences between tokens that reach the "
                                        "output from layer{} {} next to nothing lies within samples: {}",
                                        low.size() > 1 ? "s" : "", ranges(low), text)),
          *least, limit);
  else if (unclear.empty())
    about(c.say("collapse", fmt::format("to first order, of the differences between tokens that reach the "
                                        "output from every layer more than next to nothing lies within "
                                        "samples: the least is {}",
                                        text)),
          *least, limit);
  if (!unclear.empty())
    c.say("collapse",
          fmt::format("not known whether, to first order, more than next to nothing of the differences "
                      "between tokens that reach the output from layer{} {} lies within samples: within two "
                      "standard errors of {}",
                      unclear.size() > 1 ? "s" : "", ranges(unclear), number(limit)),
          false);
  c.findings[first].claims = std::move(claims);
}

void judge_collapse(Case& c) {
  std::vector<Seen> all = places(c, "full");
  std::erase_if(all, [](const Seen& s) { return s.spread == nullptr; });
  if (all.empty()) {
    c.say("collapse", "not known: no spread was measured", false).measured = false;
    return;
  }
  if (const std::string few = c.too_few(*all.front().spread); !few.empty()) {
    c.say("collapse", fmt::format("not known: {}", few), false);
    return;
  }
  uniformity(c, all);
  dimension(c, all);
  seen_by_output(c);
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_collapse{
    .order = 20,
    .topic = "collapse",
    .question = "Where do tokens become alike?",
    .thresholds = {{"spread", 0.1, "share", "spread below this: the tokens of a sample are nearly all alike"},
                   {"collapse_ratio", 0.5, "ratio",
                    "... and below this share of the baseline's, where there is one"},
                   {"read", 0.1, "share",
                    "nine units of ten differ by less than this between tokens: they tell nothing apart"},
                   {"use", 0.1, "share", "use below this: the output does not need what tells tokens apart"},
                   {"dimension", 2, "directions",
                    "unit_rank below this: most of what tells tokens apart lies along one direction"}},
    .judge = verdict::judge_collapse};

}  // namespace rankscope
