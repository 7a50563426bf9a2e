// Distributions over the vocabulary, read off hidden states tile by tile: the table is never whole in memory.
#pragma once

#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "pass/answers.h"
#include "pass/pass.h"

namespace rankscope {

/// What one state says, a number for each row; double precision.
struct RowOutputs {
  at::Tensor nll;  // [M] -log p(answer); not meant where a row has no answer
  at::Tensor kl;   // [M] KL(first || this), zero of the first
};

/// `states` are what the vocabulary matrix multiplies ([M, w] each, model/embed_and_unembed.h), the first the
/// one others are held against. `ids` [M]: the right answer of each row, or -1; undefined: none is asked for.
std::vector<RowOutputs> read_rows(WeightSource& source, const std::vector<at::Tensor>& states,
                                  const at::Tensor& ids);

/// Multiply-adds of the same for one state, as FLOPs a row.
double readout_flops(const ModelSpec& spec);

/// Rows of the loss for every variant of the states: nll and perplexity, or pseudo_nll, over the tokens that
/// the questions of its input ask for, put in front of the table. The mean is over all tokens asked for; its
/// error is that of a ratio over samples.
void add_losses(const std::vector<FinalState>& states, const PassPlan& plan,
                const std::vector<Questions>& questions, ResultTable& table);

/// A mean of samples' means, each with the number of tokens behind it, and its standard error.
struct WeightedMean {
  double value, error;
};
WeightedMean mean_over_tokens(const std::vector<double>& means, const std::vector<int64_t>& tokens);

}  // namespace rankscope
