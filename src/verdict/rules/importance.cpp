// What every part is worth, from what --ablate measured: which the output needs, how many can go together,
// who stands in for whom, and which ranks suffice. What all that cost is a note (importance/cost_note.h).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>

#include "verdict/rule.h"

namespace rankscope::verdict {
namespace {

const Row* of_full(const Case& c, std::string_view metric) { return c.evidence.any("full", metric); }

std::string signed_error(const Row& r) { return (r.value >= 0 ? "+" : "") + with_error(r); }

// "16 heads", "16 of 48 heads" where only some of the network's were taken out.
std::string count_taken(const Case& c, size_t taken, std::string_view what) {
  size_t all = 0;
  for (const BlockSpec& b : c.spec.blocks)
    if (what == "head" && b.attention_branch() != nullptr)
      all += static_cast<size_t>(b.attention_branch()->attention()->heads);
  const std::string some = count_of(static_cast<double>(std::max(all, taken)), what);
  return taken < all ? fmt::format("{} of {}", taken, some) : some;
}

/// A kind of part and what stood in its place, as metrics name them and as sentences do.
struct Taken {
  std::string_view stem, what, how;
  std::string name(const Row& r) const {
    return stem.starts_with("head")     ? label(r)
           : stem.starts_with("expert") ? fmt::format("L{}E{}", r.layer, r.head)
           : stem.starts_with("mlp")    ? fmt::format("that of layer {}", r.layer)
                                        : fmt::format("layer {}", r.layer);
  }
};

constexpr std::array kTaken{
    Taken{"head_zero", "head", "writing zero with its share of the biases"},
    Taken{"head_mean", "head", "carrying its mean over all tokens"},
    Taken{"head_resample", "head", "carrying what it carries at another token"},
    Taken{"mlp_zero", "MLP", "writing zero"},
    Taken{"mlp_mean", "MLP", "writing its mean over all tokens"},
    Taken{"mlp_resample", "MLP", "writing what it writes at another token"},
    Taken{"layer_zero", "layer", "left out"},
    Taken{"expert_zero", "expert", "writing zero"},
};

const Row* loss_of(const Case& c, const Row& r, const Taken& t) {
  return c.evidence.of_head("full", fmt::format("{}_loss", t.stem), r.layer, r.head);
}

// "L0H1 0.41 ± 0.02 (loss +0.3 ± 0.01)"
std::string cost_of(const Case& c, const Row& r, const Taken& t) {
  const Row* loss = loss_of(c, r, t);
  return fmt::format("{} {}{}", t.name(r), with_error(r),
                     loss != nullptr ? fmt::format(" (loss {})", signed_error(*loss)) : "");
}

void one_by_one(Case& c, const Taken& t) {
  const std::string kl = fmt::format("{}_kl", t.stem);
  const bool nats = of_full(c, kl) != nullptr;
  const std::vector<const Row*>& rows = c.evidence.all("full", nats ? kl : fmt::format("{}_error", t.stem));
  if (rows.empty()) return;
  const double epsilon = c.limit(nats ? "epsilon" : "epsilon_error");
  std::vector<Side> sides =
      c.too_short() ? std::vector<Side>(rows.size(), Side::unclear) : sides_of(rows, epsilon);
  std::vector<const Row*> sorted = rows;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Row* a, const Row* b) { return a->value > b->value; });
  // An output that hardly changes may still be sure of another token: what the text loses decides, too.
  std::vector<const Row*> losses;
  std::vector<Side*> quiet;
  for (size_t i = 0; i < rows.size(); ++i)
    if (const Row* loss = loss_of(c, *rows[i], t); loss != nullptr && sides[i] != Side::above)
      losses.push_back(loss), quiet.push_back(&sides[i]);
  const std::vector<Side> of_text =
      c.too_short() ? std::vector<Side>(losses.size(), Side::unclear) : sides_of(losses, epsilon);
  int for_loss = 0, not_by_loss = 0;
  for (size_t i = 0; i < quiet.size(); ++i) {
    for_loss += of_text[i] == Side::above;
    not_by_loss += of_text[i] == Side::unclear && *quiet[i] == Side::below;
    if (of_text[i] == Side::above || *quiet[i] == Side::below) *quiet[i] = of_text[i];
  }
  int needed = 0, free = 0;
  std::vector<Claim> claims;
  for (size_t i = 0; i < rows.size(); ++i) {
    needed += sides[i] == Side::above;
    free += sides[i] == Side::below;
    claims.push_back({t.stem == "head_zero"
                          ? fmt::format("needed {}", t.name(*rows[i]))
                          : fmt::format("needed {} {} {}", t.stem, rows[i]->layer, rows[i]->head),
                      answer_of(sides[i], Side::above)});
  }
  std::vector<std::string> most;
  for (size_t i = 0; i < std::min<size_t>(3, sorted.size()); ++i) most.push_back(cost_of(c, *sorted[i], t));
  std::string text = fmt::format(
      "of {}, each alone {} on {}, the output needs {}{}, {} cost less than epsilon {}",
      count_taken(c, rows.size(), t.what), t.how, count_of(static_cast<double>(rows.front()->n), "sample"),
      needed, for_loss > 0 ? fmt::format(" ({} for the loss of the text alone)", for_loss) : "", free,
      number(epsilon));
  const int open = static_cast<int>(rows.size()) - needed - free;
  if (open > 0)
    text +=
        fmt::format(" and {} are not known{}{}", open,
                    not_by_loss == 0      ? ""
                    : not_by_loss == open ? ", for the loss of the text alone"
                                          : fmt::format(" ({} for the loss of the text alone)", not_by_loss),
                    c.too_short() ? ": " + c.short_text() : "");
  text +=
      fmt::format("; most {}{}",
                  nats ? "in nats: " : "by the relative change of the last state: ", fmt::join(most, ", "));
  if (sorted.size() > most.size()) text += fmt::format("; least: {}", cost_of(c, *sorted.back(), t));
  Finding& f = c.say("worth", text, needed + free > 0);
  about(f, *sorted.front(), epsilon);
  f.claims = std::move(claims);
}

void together(Case& c) {
  const bool nats = of_full(c, "prune_kl") != nullptr;
  const std::vector<const Row*>& rows = c.evidence.all("full", nats ? "prune_kl" : "prune_error");
  if (rows.empty()) return;
  const double epsilon = c.limit(nats ? "epsilon" : "epsilon_error");
  const auto beside = [&](const char* metric, const Row& r) -> const Row* {
    for (const Row* other : c.evidence.all("full", metric))
      if (other->depth == r.depth) return other;
    return nullptr;
  };
  const auto decided = [&](const Row& r) {  // by the loss of the text, too, as one by one
    const bool few = static_cast<double>(r.n) < c.limit("few_samples") || c.too_short();
    if (few) return Side::unclear;
    const Row* loss = beside("prune_loss", r);
    const Side output = side(r, epsilon), text = loss != nullptr ? side(*loss, epsilon) : Side::below;
    return output == Side::above || text == Side::above       ? Side::above
           : output == Side::unclear || text == Side::unclear ? Side::unclear
                                                              : Side::below;
  };
  const Row *last = nullptr, *next = nullptr;
  for (const Row* r : rows) {
    if (decided(*r) == Side::below && next == nullptr)
      last = r;
    else if (next == nullptr)
      next = r;
  }
  const auto point = [&](const Row& r) {
    const Row *loss = beside("prune_loss", r), *parameters = beside("prune_parameters", r),
              *cache = beside("prune_cache", r);
    std::string text = fmt::format("{} out cost {}", r.depth, with_error(r));
    if (loss != nullptr) text += fmt::format(", loss {}", signed_error(*loss));
    if (parameters != nullptr && cache != nullptr)
      text += fmt::format(", save {} parameters and {}% of the cache of keys and values",
                          number(parameters->value), number(std::round(1000 * cache->value) / 10));
    return text;
  };
  const size_t all = rows.empty() ? 0 : static_cast<size_t>(rows.back()->depth);
  const bool none = decided(*rows.front()) == Side::above;
  const std::string on = count_of(static_cast<double>(rows.front()->n), "sample");
  const std::string limit = fmt::format("epsilon {}{}", number(epsilon),
                                        of_full(c, "prune_loss") != nullptr ? ", for the loss, too" : "");
  Finding& f =
      last != nullptr
          ? c.say("worth", fmt::format("least important first, {} of {} heads can go together on {} "
                                       "({}): {}{}",
                                       last->depth, all, on, limit, point(*last),
                                       next != nullptr ? "; " + point(*next) : ""))
          : c.say("worth",
                  fmt::format("{} the {} least important of {} heads can go on {} ({}): {}{}",
                              none ? "not even" : "not known whether", rows.front()->depth, all, on, limit,
                              point(*rows.front()), !none && c.too_short() ? "; " + c.short_text() : ""),
                  none);
  about(f, last != nullptr ? *last : *rows.front(), epsilon);
  f.claims = {{"prunable", last != nullptr ? Claim::Answer::yes
                           : none          ? Claim::Answer::no
                                           : Claim::Answer::unknown}};
}

/// " (loss +0.02 ± 0.003)" of a cut in all layers; nothing where there is none.
std::string loss_at(const Case& c, const std::string& stem, int depth) {
  for (const Row* r : c.evidence.all("full", stem + "_loss"))
    if (r->layer < 0 && r->depth == depth) return fmt::format(" (loss {})", signed_error(*r));
  return "";
}

void ranks(Case& c) {
  const bool nats = c.spec.output.kind != HeadKind::none;
  for (const char* map : {"qk", "ov", "kv"}) {
    const std::string stem = fmt::format("rank_{}", map);
    const Row *all = nullptr, *smallest = nullptr, *largest = nullptr;
    std::set<int> enough, tried;  // layers
    for (const Row* r : c.evidence.all("full", stem + "_suffices")) {
      if (r->layer < 0) all = r;
      if (r->layer >= 0) enough.insert(r->layer);
      if (r->layer >= 0 && (smallest == nullptr || r->value < smallest->value)) smallest = r;
      if (r->layer >= 0 && (largest == nullptr || r->value > largest->value)) largest = r;
    }
    const std::vector<const Row*>& curve = c.evidence.all("full", stem + (nats ? "_kl" : "_error"));
    if (curve.empty()) continue;
    std::vector<std::string> points;
    for (const Row* r : curve) {
      if (r->layer < 0)
        points.push_back(fmt::format("{}: {}{}", r->depth, number(r->value), loss_at(c, stem, r->depth)));
      if (r->layer >= 0) tried.insert(r->layer);
    }
    std::vector<int> not_enough;
    std::set_difference(tried.begin(), tried.end(), enough.begin(), enough.end(),
                        std::back_inserter(not_enough));
    const double epsilon = c.limit(nats ? "epsilon" : "epsilon_error");
    const std::string on = count_of(static_cast<double>(curve.front()->n), "sample");
    const bool few = static_cast<double>(curve.front()->n) < c.limit("few_samples") || c.too_short();
    std::string text =
        few ? fmt::format("not known which rank of {} suffices (epsilon {}): {}", map, number(epsilon),
                          c.too_short()
                              ? c.short_text()
                              : fmt::format("{} {} too few", on, curve.front()->n == 1 ? "is" : "are"))
        : all != nullptr ? fmt::format("rank {} of {} suffices in all layers at once on {} (epsilon {})",
                                       number(all->value), map, on, number(epsilon))
                         : fmt::format(
                               "no rank of {} asked for is known to suffice in all layers at once on {} "
                               "(epsilon {})",
                               map, on, number(epsilon));
    text += "; cost by rank ";
    for (size_t i = 0; i < points.size(); ++i) text += (i > 0 ? ", " : "") + points[i];
    if (few) {
      c.say("worth", text, false).claims = {{fmt::format("curve of {}", map), Claim::Answer::yes}};
      continue;
    }
    if (smallest != nullptr && smallest->value == largest->value)
      text += fmt::format("; one layer at a time {} in {}", number(smallest->value),
                          not_enough.empty() ? "each" : layers_text({enough.begin(), enough.end()}));
    else if (smallest != nullptr)
      text += fmt::format("; one layer at a time from {} (layer {}) to {} (layer {})",
                          number(smallest->value), smallest->layer, number(largest->value), largest->layer);
    if (!not_enough.empty())
      text += fmt::format("; no rank asked for is known to suffice in {} alone", layers_text(not_enough));
    Finding& f = c.say("worth", text);
    f.value = all != nullptr ? all->value : kNone;
    f.threshold = epsilon;
    // The curve itself is the news, whether or not a rank suffices.
    f.claims = {
        {fmt::format("rank of {}", map), all != nullptr ? Claim::Answer::yes : Claim::Answer::unknown},
        {fmt::format("curve of {}", map), Claim::Answer::yes}};
  }
}

// How far the estimates can be trusted, where some heads were measured exactly, too.
void estimates(Case& c) {
  const Row *kl = of_full(c, "estimate_kl_rank_correlation"),
            *loss = of_full(c, "estimate_loss_rank_correlation");
  if (kl == nullptr) return;
  c.say("worth", fmt::format("estimates and exact values of {} heads have a rank correlation of {}{}",
                             c.evidence.all("full", "head_zero_kl").size(),
                             fmt::format("{:.2f} for the KL", kl->value),
                             loss != nullptr ? fmt::format(" and {:.2f} for the loss", loss->value) : ""))
      .claims = {{"estimated", Claim::Answer::yes}};
}

void judge_importance(Case& c) {
  for (const Taken& t : kTaken) one_by_one(c, t);
  together(c);
  say_stand_ins(c, "pair:", "worth", "of the heads that seem free alone");
  ranks(c);
  estimates(c);
}

}  // namespace
}  // namespace rankscope::verdict

namespace rankscope {

extern const Rule rule_importance{.order = 65,
                                  .topic = "worth",
                                  .question = "What is every part worth, and what can go together?",
                                  .thresholds = {},
                                  .judge = verdict::judge_importance};

}  // namespace rankscope
