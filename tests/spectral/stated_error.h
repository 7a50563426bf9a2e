// Spectra are held to the error they state for themselves.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "spectral/spectrum.h"
#include "support/reference.h"

namespace rankscope {

/// Each sigma, largest first, within the error the spectrum states for it.
inline void expect_within_error(const Spectrum& s, const at::Tensor& x) {
  const std::vector<double> exact = reference::sigma(x);
  ASSERT_EQ(s.sigma.size(), exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    const double floor = 1e-15 * static_cast<double>(s.rows + s.cols) * exact[0];
    const double finer = s.error > 0 && exact[i] > s.error ? s.error * s.error / exact[i] : s.error;
    EXPECT_NEAR(s.sigma[i], exact[i], std::max(finer, floor)) << s.route << " sigma_" << i;
    EXPECT_LE(s.sigma[i], s.sigma[i > 0 ? i - 1 : 0]);
  }
}

}  // namespace rankscope
