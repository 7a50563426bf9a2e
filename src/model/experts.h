// A mixture of experts on tensors: who takes whom, and what the experts that are taken write.
#pragma once

#include <functional>
#include <string>

#include "base/tensor_fwd.h"
#include "parts/program.h"
#include "tensors/weights.h"

namespace rankscope {

/// How much each token takes of each expert, [N, E], from the router's scores [N, E].
at::Tensor shares_of(const at::Tensor& scores, const Sharing& sharing, const Weights& weights);

/// The three maps of one expert, read when they are needed; what it has not is undefined.
struct Expert {
  at::Tensor W_in, b_in, W_gate, b_gate, W_out, b_out;
};
Expert expert_of(const Operation& o, const Weights& weights, const std::string& name);

/// Calls `each` for every expert that a token takes, with the tokens and their shares [n]: "experts.<e>", and
/// "shared" with all tokens and their shares of it, undefined where they take it whole (`always` [N, 1] is).
void for_each_taken(const Operation& o, const at::Tensor& shares, const at::Tensor& always,
                    const std::function<void(const std::string& name, const at::Tensor& tokens,
                                             const at::Tensor& share)>& each);

/// What the experts write for x [N, d]. `dense`: every expert runs on every token, so that nothing depends on
/// who is taken but the numbers; otherwise only those that are taken are read and run, and `show`, where
/// given, sees what each wrote into its tokens [n, d]. `always` [N, 1]: how much of the one that serves all.
at::Tensor run_experts(const at::Tensor& x, const at::Tensor& shares, const at::Tensor& always,
                       const Operation& o, const Weights& weights, bool dense,
                       const std::function<void(int64_t expert, const at::Tensor& written)>& show = {});

}  // namespace rankscope
