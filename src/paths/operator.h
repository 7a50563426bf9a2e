// `rankscope operator`, whole: the network as one linear map at each input. Knows nothing of torch.
#pragma once

#include <string>
#include <vector>

#include "pass/request.h"

namespace rankscope {

struct OperatorRequest {
  ScanRequest scan;             // model, input and arithmetic
  std::string init;             // a shape at random initialisation instead of a model; scan.init is not read
  int64_t top = 16;             // singular values
  double tolerance = 1e-4;      // relative residual they should have
  int64_t applications = 160;   // of the operator and its adjoint, at most, for them
  int64_t probes = 16;          // random vectors behind the ranks of the unfoldings
  int64_t jacobian_probes = 4;  // random directions behind the distance from the Jacobian; 0: none
  bool map = true;              // the token-to-token map, one application a token
};

/// Which input token each output token is made of; row-major [tokens out, tokens in].
struct TokenMap {
  int64_t sample = 0, tokens = 0;
  std::vector<double> in;      // ||T[i,:,j,:] x_j||
  std::vector<double> in_out;  // u_i . T[i,:,j,:] x_j: sums with the bias to u_i . y_i
};

struct OperatorResult {
  ScanResult scan;
  std::vector<TokenMap> maps;  // one a sample
};

/// Where the request asks to show it, the first sample's map is pooled into the arrays "operator.map.in" and
/// "operator.map.in_out", and the manifest's "token_map" says of how many tokens it is.
///
/// Rows of the variant "full" at the site "operator": sigma_1, sigma_1_residual, ...; operator_frobenius,
/// operator_stable_rank; participation_matrix, _token_out, _channel_out, _token_in, _channel_in; bias_share;
/// completeness; map_self, map_first, map_effective_rank; jacobian_distance, jacobian_norm_ratio. The
/// direction u_i is that of the word the model predicts at token i, or of the output itself where there is no
/// head.
OperatorResult measure_operator(const OperatorRequest& request, const ProgressCallback& progress);

}  // namespace rankscope
