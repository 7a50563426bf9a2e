// What a trained network has learned to compare: how near a head's QK map is to a multiple of the identity.
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
};

Alignment alignment(const ModelSpec& network, const std::vector<float>& parameters);

}  // namespace rankscope
