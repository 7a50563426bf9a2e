// What a trained network has learned to compare and to pass on: how near a head's QK map is to a multiple of
// the identity, which multiple of it a head's OV map holds, and how long its answers are.
#pragma once

#include <vector>

#include "spec/model.h"

namespace rankscope {

/// Medians over the heads of the first layer, of M = W_Q^T W_K on the coordinates of a token.
struct Alignment {
  double angle = 0;           // degrees between M and the identity; 180 is minus the identity
  double scale = 0;           // ||M||_F / sqrt(d)
  double temperature = 0;     // score_scale * tr(M) / d: the beta of beta <x, y>
  double effective_rank = 0;  // of M, exp(entropy of its singular values)
  /// Least and largest over the heads of tr(V_h) / d, V_h = W_O W_V (W_O alone where values are the tokens):
  /// heads of opposite sign subtract from each other. NaN where the part has no such maps.
  double ov_least = 0, ov_most = 0;
  /// The gain of the unit norm that the answer comes from: the length of every token there. At zero nothing
  /// in front of it has a gradient. NaN where the answer comes from no such norm.
  double answer_gain = 0;
};

Alignment alignment(const ModelSpec& network, const std::vector<float>& parameters);

}  // namespace rankscope
