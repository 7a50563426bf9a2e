#include "pass/metrics.h"

#include <cctype>
#include <string>
#include <vector>

namespace rankscope {

// r is residual_l1inf_rel.
const std::vector<MetricInfo>& metrics_without_lens() {
  static const std::vector<MetricInfo> all{
      {.name = "nll",
       .formula = "mean over tokens but the first of -log p(token | those before it), nats",
       .meaning = "0: every next token is known; log of the vocabulary: none is"},
      {.name = "perplexity",
       .formula = "exp(nll)",
       .meaning = "among how many equally likely tokens the network chooses"},
      {.name = "pseudo_nll",
       .formula = "mean over the hidden 15 % of the content tokens of -log p(token | the rest), nats",
       .meaning = "0: every hidden token is known; log of the vocabulary: none is"},
      {.name = "output_kl",
       .formula = "mean over tokens of KL(p_full || p_variant), nats",
       .meaning = "0: the variant's output is that of the whole network"},
      {.name = "output_error",
       .formula = "||y - y_full||_F / ||y_full||_F of the last hidden state, where there is no vocabulary",
       .meaning = "0: the variant's output is that of the whole network"},

      {.name = "output_range",
       .formula =
           "mean over tokens of KL(p_full || its mean over all tokens of all samples), nats; without a "
           "vocabulary ||y - mean y||_F / ||y||_F",
       .meaning = "0: the output is the same at every token, and nothing can be needed for it"},
      {.name = "use",
       .formula = "KL(full | the content tokens in front of the layer's MLP (of parallel blocks: of the "
                  "block) replaced "
                  "by their mean, causal: by that of those up to each) / KL(full | mean output of the "
                  "corpus), KL averaged over the tokens of a "
                  "sample, then over samples; without a vocabulary ||y - y'||^2 / ||y||^2 of a sample for KL",
       .meaning =
           "0: the output needs nothing that tells the tokens of a sample apart; 1: all it has hangs on it",
       .version = 2},
      {.name = "spread_fisher",
       .formula =
           "E (x - m)^T G (x - m) / E (x - mu)^T G (x - mu) in front of the layer's MLP, G = E g g^T, g the "
           "gradient of log p(y) there, y drawn from the output; m the mean over the sample's tokens "
           "(causal: "
           "over those up to this one), mu that over all samples; at most 32 content tokens of a sample, "
           "drawn as for spread, without those whose (x - m)^T G (x - m) is over 20 times the median one",
       .meaning =
           "0: of what reaches the output nothing tells the tokens of a sample apart, beside what tells "
           "samples apart; tokens drawn independently of their sample give 1 - 1/n",
       .version = 2},
      {.name = "fisher_passes",
       .formula = "floating-point operations of spread_fisher over those of all blocks once",
       .meaning = "what it cost, in forward passes"},
      {.name = "stand_in",
       .formula = "cost of both heads' means in their places (of zero, for variants `pair:`), less the cost "
                  "of x_A + x_B - x as last hidden state (behind the final norm); output_kl or output_error; "
                  "mean over samples",
       .meaning = "above 0: the heads stand in for each other, as their effects do not add",
       .version = 2},
      {.name = "stand_in_loss",
       .formula =
           "the same of the loss, where something is asked for: loss with both heads at zero, less that "
           "of x_A + x_B - x; mean over samples",
       .meaning = "above 0: the heads stand in for each other in what the text needs"},
      {.name = "head_able_rel",
       .formula = "sqrt(n median |W_O (v - v')|^2 / 2) over the values v, v' of neighbours among a sample's "
                  "n tokens, over "
                  "||C X||_F",
       .meaning = "what the head could write if every token looked at itself"},
      {.name = "sink_slope_lengths",
       .formula = "slope of sink_margin in log length over the samples whole, halved, and halved again down "
                  "to 32 tokens, as far as the key that the head has in most samples is left",
       .meaning = "0: the sink keeps its margin as texts grow; -1: it keeps its logit and loses mass",
       .version = 2},
      {.name = "sink_drained",
       .formula =
           "|W_O (v_k - u)| / median over tokens (the lower of two in the middle) of "
           "|W_O (v - u)|, k the key that the head has in most samples, u what biases alone make of a value",
       .meaning = "near 0: attention that goes to the sink writes nothing",
       .version = 2},
      {.name = "part_zero_kl",
       .formula = "KL(p_full || p) with the part writing zero, nats; mean over tokens",
       .meaning = "0: the output does not need it"},
      {.name = "part_zero_loss",
       .formula = "loss with the part writing zero - loss, nats",
       .meaning = "0: the loss does not need it; below: it does harm"},
      {.name = "part_zero_error",
       .formula = "||y - y_full||_F / ||y_full||_F of the last hidden state with the part writing zero",
       .meaning = "0: the output does not need it"},
      {.name = "part_mean_kl",
       .formula = "part_zero_kl with its mean over the tokens in its place",
       .meaning = "0: that it varies does not matter",
       .version = 2},
      {.name = "part_mean_loss",
       .formula = "part_zero_loss with its mean over the tokens in its place",
       .meaning = "0: that it varies does not matter",
       .version = 2},
      {.name = "part_mean_error",
       .formula = "part_zero_error with its mean over the tokens in its place",
       .meaning = "0: that it varies does not matter",
       .version = 2},
      {.name = "part_resample_kl",
       .formula = "part_zero_kl with what it makes of another token of the batch in its place",
       .meaning = "0: what it says of a token does not matter"},
      {.name = "part_resample_loss",
       .formula = "part_zero_loss with what it makes of another token of the batch in its place",
       .meaning = "0: what it says of a token does not matter"},
      {.name = "part_resample_error",
       .formula = "part_zero_error with what it makes of another token of the batch in its place",
       .meaning = "0: what it says of a token does not matter"},
      {.name = "head_estimate_kl",
       .formula =
           "half the mean over draws y from the output of (g_y . z_h)^2 / tokens, g_y = d log p(y) / dz",
       .meaning = "head_zero_kl to second order"},
      {.name = "head_estimate_loss",
       .formula = "-g . z_h, g the gradient of the loss where the head carries z_h",
       .meaning = "head_zero_loss to first order"},
      {.name = "estimate_kl_rank_correlation",
       .formula = "Spearman's, of head_estimate_kl and head_zero_kl",
       .meaning = "1: the estimates order the heads as the exact values do"},
      {.name = "estimate_loss_rank_correlation",
       .formula = "Spearman's, of head_estimate_loss and head_zero_loss",
       .meaning = "1: the estimates order the heads as the exact values do"},
      {.name = "estimate_passes",
       .formula = "floating-point operations of the estimates / those of all blocks on the same samples",
       .meaning = "what the estimates cost, in forward passes"},
      {.name = "part_zero_passes",
       .formula = "floating-point operations of all runs / those of all blocks on the same samples",
       .meaning = "what it cost, in forward passes"},
      {.name = "part_zero_passes_bound",
       .formula = "the same by the sizes of the weights: rest of the block, blocks behind it, logits; one "
                  "pass of full",
       .meaning = "what it may cost"},
      {.name = "prune_kl",
       .formula = "KL(p_full || p) with `depth` heads out, those of least head_zero_kl first, nats",
       .meaning = "0: they can all go"},
      {.name = "prune_error",
       .formula = "the relative error of the last hidden state with `depth` heads out",
       .meaning = "0: they can all go"},
      {.name = "prune_loss",
       .formula = "loss with `depth` heads out - loss, nats",
       .meaning = "0: they can all go"},
      {.name = "prune_parameters",
       .formula = "parameters that go with these heads: of Q, K, V, O and their gates",
       .meaning = "what is saved"},
      {.name = "prune_cache",
       .formula = "share of the cache of keys and values that goes with these heads",
       .meaning = "what is saved"},
      {.name = "plan_loss_search",
       .formula = "loss of the planned network - loss, over the texts that the search judged by, nats",
       .meaning = "below the budget, and so is its upper end"},
      {.name = "plan_loss_held_out",
       .formula = "the same over the last fifth of the samples, which the search never read",
       .meaning = "what the plan costs on texts that did not choose it"},
      {.name = "plan_loss_all",
       .formula = "the same over all texts",
       .meaning = "what a scan of the written model says"},
      {.name = "plan_step",
       .formula = "the loss after measured step `depth` of the search - loss, nats",
       .meaning = "taken or not, as manifest.json's plan says"},
      {.name = "plan_step_upper",
       .formula = "plan_step + t s.e., t Student's for the chance 0.05 / (depth (depth + 1))",
       .meaning = "the step is taken where this is within the budget"},
      {.name = "plan_heads_out", .formula = "heads of the layer that go", .meaning = "0: none"},
      {.name = "plan_rank_qk",
       .formula = "rank of each head's QK map in the plan",
       .meaning = "d_qk: left whole"},
      {.name = "plan_rank_ov",
       .formula = "rank of each head's OV map in the plan",
       .meaning = "d_v: left whole"},
      {.name = "plan_rank_kv",
       .formula = "width of the latent that keys and values of a KV head share in the plan",
       .meaning = "d_qk + d_v: left whole"},
      {.name = "rank_map_kl",
       .formula = "KL(p_full || p) with the map cut to rank `depth`, in one layer or in all, nats",
       .meaning = "0: that rank suffices"},
      {.name = "rank_map_error",
       .formula = "relative error of the last hidden state with the map cut to rank `depth`",
       .meaning = "0: that rank suffices"},
      {.name = "rank_map_loss",
       .formula = "loss with the map cut to rank `depth` - loss, nats",
       .meaning = "0: that rank suffices"},
      {.name = "rank_map_estimate_kl",
       .formula = "half the mean over draws of (g_y . (z_h cut - z_h))^2 / tokens, of one head",
       .meaning = "0: that rank suffices for this head"},
      {.name = "rank_map_suffices",
       .formula =
           "smallest rank of the curve whose KL + 2 standard errors is below epsilon, and with which the "
           "loss does not rise by more than epsilon + 2 standard errors",
       .meaning = "the rank that the output needs",
       .version = 2},
      {.name = "rank_map_suffices_estimate",
       .formula = "the same of one head, by rank_map_estimate_kl",
       .meaning = "the rank that the output needs of this head"},

      {.name = "residual_l1inf_rel_log10",
       .formula = "mean over texts of log10 r",
       .meaning = "follows a collapse below the smallest double",
       .version = 2},
      {.name = "residual_l1inf_rel_decades",
       .formula = "-log10 r",
       .meaning = "high: the residual is many powers of ten small",
       .version = 2},
      {.name = "residual_l1inf_rel_mean",
       .formula = "arithmetic mean over texts, or networks, of r",
       .meaning = "what the paper plots"},
      {.name = "residual_l1inf_rel_sd_texts",
       .formula = "standard deviation of r over the texts of one network",
       .meaning = "high: the text decides"},
      {.name = "residual_l1inf_rel_sd_networks",
       .formula = "standard deviation of r over networks",
       .meaning = "high: the draw of the weights decides"},
      {.name = "local_exponent",
       .formula = "(log r[l] - log r[l-1]) / (log r[l-1] - log r[l-2])",
       .meaning = "3: the cubic law; 1: exponential decay"},
      {.name = "noise_floor", .formula = "2 eps of the arithmetic", .meaning = "below it r is rounding"},
      {.name = "published", .formula = "r as published", .meaning = "to be held beside ours"},
      {.name = "published_sd",
       .formula = "largest standard deviation of r as published",
       .meaning = "high: theirs scatters"},
      {.name = "published_ratio", .formula = "ours / published", .meaning = "1: the same"},
      {.name = "bound_score",
       .formula = "max |E|, E = scale R W_QK R^T, of the first text alone, as are all bound_*",
       .meaning = "size of the scores, without what all queries share"},
      {.name = "bound_spread",
       .formula = "max over rows of E of their range",
       .meaning = "above 1.256 the proof does not apply"},
      {.name = "bound_gamma",
       .formula =
           "sqrt(max sum_i D_i / 2 ||E||_1 max max_i D_i / 2 ||E||_1), each max over heads, D_i the range of "
           "row i of E",
       .meaning = "the input's part of the bound",
       .version = 2},
      {.name = "bound_beta",
       .formula = "max ||W_QK||_1 sqrt(max ||W_h||_1 max ||W_h||_inf)",
       .meaning = "the weights' part of the bound"},
      {.name = "bound_c",
       .formula = "8 (1 - 1/n) gamma beta H scale, n tokens",
       .meaning =
           "residual_l1inf after the layer is at most c times its cube before, where the proof applies",
       .version = 2},
      {.name = "bound_margin",
       .formula = "sqrt(c) residual_l1inf",
       .meaning = "below 1 the bound shrinks, above it says nothing",
       .version = 2},
      {.name = "bound_log10",
       .formula = "log10(c residual_l1inf^3)",
       .meaning = "what the bound allows",
       .version = 2},
      {.name = "bound_measured_log10",
       .formula = "log10 of residual_l1inf after the layer",
       .meaning = "what is there"},
      {.name = "bound_slack_log10",
       .formula = "bound_log10 - bound_measured_log10",
       .meaning = "high: the bound is far from tight",
       .version = 2},

      {.name = "path_norm",
       .formula = "root mean square of the sum of the paths",
       .meaning = "high: these paths write much",
       .mean = Mean::geometric,
       .version = 2},
      {.name = "path_share",
       .formula = "path_norm / (sum of path_norm over lengths + that of the bias stream)",
       .meaning = "1: all that is written comes along paths of this length",
       .version = 2},
      {.name = "path_share_bias",
       .formula = "path_norm of the bias stream / the same sum",
       .meaning = "1: all that is written is written by biases, whatever the tokens"},
      {.name = "path_alpha",
       .formula = "a / (a + b), a and b = ||.||_1 ||.||_inf of the stream and of what attention writes",
       .meaning = "1: the layer's attention writes nothing"},
      {.name = "path_rank1_distance",
       .formula = "median over chains of the distance of a product of attention matrices from rank one",
       .meaning = "0: every token gets the same"},
      {.name = "path_rank1_distance_q1", .formula = "first quartile of the same", .meaning = "scatter"},
      {.name = "path_rank1_distance_q3", .formula = "third quartile of the same", .meaning = "scatter"},
      {.name = "path_published",
       .formula = "path_rank1_distance as published",
       .meaning = "to be held beside ours"},
      {.name = "path_published_ratio", .formula = "ours / published", .meaning = "1: the same"},

      {.name = "sigma_k",
       .formula = "k-th singular value of the frozen operator",
       .meaning = "largest gains"},
      {.name = "sigma_k_residual",
       .formula = "||A^T u - sigma v|| / sigma, as the iteration's recurrence has it: rounding comes on top",
       .meaning = "a singular value lies this close, relatively"},
      {.name = "applications",
       .formula = "applications of the operator and its adjoint",
       .meaning = "what the spectrum cost"},
      {.name = "operator_frobenius",
       .formula = "||T||_F, from random directions",
       .meaning = "size of the operator"},
      {.name = "operator_stable_rank",
       .formula = "||T||_F^2 / sigma_1^2",
       .meaning = "1: one direction carries all"},
      {.name = "participation_matrix",
       .formula = "(sum s^2)^2 / sum s^4 over the singular values s of T",
       .meaning = "how many directions T uses"},
      {.name = "participation_token_out",
       .formula = "the same, output tokens against all other indices",
       .meaning = "1: every token gets the same"},
      {.name = "participation_channel_out",
       .formula = "the same, output channels against all other indices",
       .meaning = "1: one channel is written"},
      {.name = "participation_token_in",
       .formula = "the same, input tokens against all other indices",
       .meaning = "1: one token is read"},
      {.name = "participation_channel_in",
       .formula = "the same, input channels against all other indices",
       .meaning = "1: one channel is read"},
      {.name = "bias_share",
       .formula = "||b|| / (||b|| + ||T x||)",
       .meaning = "1: the output does not depend on the input"},
      {.name = "completeness",
       .formula = "max |sum over inputs + bias - output| / max |output|",
       .meaning = "0: the token-to-token map accounts for the whole output"},
      {.name = "map_self",
       .formula =
           "mean over output tokens of |from its own token| / sum over tokens of |from each|, read along its "
           "predicted word (without a vocabulary: along itself); skips and all paths included",
       .meaning = "1: what an output says comes from its own token; 1/T: from all alike"},
      {.name = "map_first",
       .formula = "mean share of the first token in an output",
       .meaning = "1: all read the first token"},
      {.name = "map_effective_rank",
       .formula = "exp of the entropy of the normalised singular values of the map of norms",
       .meaning = "1: every output reads alike"},
      {.name = "jacobian_distance",
       .formula = "||J - T||_F / ||J||_F, from random directions",
       .meaning = "0: away from the input T is what the network does"},
      {.name = "jacobian_norm_ratio", .formula = "||T||_F / ||J||_F", .meaning = "1: of one size"}};
  return all;
}

namespace {

// "sigma_12_residual" -> "sigma_k_residual"
std::string with_letter(std::string_view name) {
  const auto digit = [&](size_t i) {
    return i < name.size() && std::isdigit(static_cast<unsigned char>(name[i]));
  };
  for (size_t at = name.find('_'); at != std::string_view::npos; at = name.find('_', at + 1)) {
    size_t end = at + 1;
    while (digit(end)) ++end;
    if (end > at + 1) return std::string(name.substr(0, at + 1)) + "k" + std::string(name.substr(end));
  }
  return std::string(name);
}

// "mlp_zero_kl" -> "part_zero_kl", "rank_qk_loss" -> "rank_map_loss", "prune_passes" -> "part_zero_passes"
std::string without_part(std::string_view name) {
  for (const std::string_view by : {"_zero_", "_mean_", "_resample_"})
    for (const std::string_view part : {"head", "mlp", "layer", "expert"})
      if (name.starts_with(part) && name.substr(part.size()).starts_with(by)) {
        const std::string_view rest = name.substr(part.size());
        if (rest.ends_with("_passes")) return "part_zero_passes";
        return rest.ends_with("_passes_bound") ? "part_zero_passes_bound" : "part" + std::string(rest);
      }
  for (const std::string_view map : {"rank_qk", "rank_ov", "rank_kv"})
    if (name.starts_with(map) && !name.ends_with("_passes") && !name.ends_with("_passes_bound"))
      return "rank_map" + std::string(name.substr(map.size()));
  if (name.ends_with("_passes_bound")) return "part_zero_passes_bound";
  return name.ends_with("_passes") && name != "estimate_passes" ? "part_zero_passes" : std::string(name);
}

}  // namespace

const MetricInfo* metric_info(std::string_view name, std::string_view site) {
  for (const SiteInfo& s : sites())  // what is shown of another stream is told as at the site it is like
    if (!s.like.empty() && s.name == within_block(site)) site = s.like;
  const MetricInfo* elsewhere = nullptr;
  for (const Lens* lens : lenses())
    for (const MetricInfo& m : lens->metrics) {
      if (m.name != name) continue;
      if (site.empty() || reads(*lens, site)) return &m;
      if (elsewhere == nullptr) elsewhere = &m;
    }
  if (elsewhere != nullptr) return elsewhere;
  const std::string general = with_letter(without_part(name));
  for (const MetricInfo& m : metrics_without_lens())
    if (m.name == general) return &m;
  return nullptr;
}

}  // namespace rankscope
