// The large end of the operator's spectrum, and how many directions it uses, from applications alone.
#pragma once

#include <cstdint>
#include <vector>

#include "operator/chain.h"

namespace rankscope {

struct TopSpectrum {
  std::vector<double> sigma;     // descending
  std::vector<double> residual;  // ||A^T u - sigma v|| / sigma: a singular value lies this close, relatively
  int64_t applications = 0;      // of the operator and its adjoint together
};

/// Golub-Kahan steps with full reorthogonalisation from a random start, until the `count` largest have a
/// relative residual of at most `tolerance`, or `most` applications are used up: then the residuals tell.
/// `like` [N, d] gives the input's shape and dtype.
TopSpectrum top_spectrum(const AffineChain& chain, const at::Tensor& like, int64_t count, double tolerance,
                         int64_t most, uint64_t seed);

/// (sum s^2)^2 / sum s^4 of the singular values of the operator read as a matrix in five ways: as it is, and
/// with one index (of [token out, channel out, token in, channel in]) against the three others. Unbiased from
/// random probes: products of different probes only.
struct Unfoldings {
  double frobenius = 0;        // ||T||_F
  double frobenius_error = 0;  // of the probes, to first order
  struct Ratio {
    double value = 0, stderr_ = 0;  // leave one probe out
  } matrix, token_out, channel_out, token_in, channel_in;
  int64_t applications = 0;
};
Unfoldings unfoldings(const AffineChain& chain, const at::Tensor& like, int64_t probes, uint64_t seed);

}  // namespace rankscope
