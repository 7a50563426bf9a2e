// What is known about a layer before it is trained, and what a trained value means beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

enum class Neighbour {
  nearest,                 // a query of its own looks for its nearest among N orthonormal points
  nearest_of_independent,  // the same among N independent points, each uniform on the sphere
  farthest,                // self-attention: N independent points, each looks for the one farthest from it
};

/// What is asked for, "nearest" or "farthest", and of which points, "orthonormal" or "independent".
std::string_view target_of(Neighbour neighbour);
std::string_view points_of(Neighbour neighbour);

struct LayerQuestion {
  int64_t d = 64;
  int64_t rank = 1;
  double heads = 1;  // a double, because the counts that the theory asks for pass 2^64
  int64_t n = 2;     // points
  Neighbour target = Neighbour::nearest;
};

struct HeadsNeeded {
  double error;
  double log10_heads;  // fewer heads of this rank cannot reach `error`
};

/// What is not known is absent: a vote is for two points, and self-attention has no bound; `applies` says
/// why.
struct Certificate {
  LayerQuestion question;
  bool full_rank = false;
  std::string applies;  // where the bound holds, or why there is none
  std::optional<double> lower_bound, plateau, vote_error;
  std::optional<double> bound_error;  // more than two points: of quadrature and rounding, already taken off
  std::vector<double> eta;            // energies eta_l^2 of the sign in degrees 1, 3, 5, 7, 9
  std::vector<double> energies = {};  // more than two points: W_l of the choice in degrees 0, 1, ...
  std::vector<HeadsNeeded> heads_needed;
  double temperature_coefficient =
      0;  // one full-rank head at inverse temperature beta: error about this / beta
  double no_selection_floor = 0;
};

/// Refuses, naming the number: d outside 2..65536, rank outside 1..d, heads that are no whole number from 1
/// to 1e300, n outside 2..1e6, n above d for orthonormal points.
Certificate certify(const LayerQuestion& question);

enum class TrialStanding {
  ok,
  not_finite,    // the trial diverged
  below_bound,   // more than three standard errors below what is possible
  no_selection,  // at the floor, or between it and 1
  worse,         // than an answer of zero
  answers_zero,  // an error of 1 in every sequence: it says nothing about what the layer could do
  nearly_zero,   // an answer that is better than zero, but hardly
};

struct Judgement {
  TrialStanding standing;
  std::string text;  // a sentence; empty when ok
};

/// How near the floor counts as the floor, relative, beside three standard errors: trained layers that select
/// nothing end within 0.4 % of it.
constexpr double kFloorTolerance = 0.005;

/// Three standard errors above this part of the floor cannot tell selection from none: then nothing is said.
constexpr double kFloorScatter = 0.02;

/// How near 1 counts as an answer of zero or nearly so, relative to the way from the floor to 1. Targets have
/// length one, so zero errs by 1 in every sequence: the standard error must be as small. A network that
/// answers is better than zero by more than three standard errors, and by more than single precision rounds
/// the mean.
constexpr double kZeroTolerance = 0.01, kZeroRounding = 1e-6;

/// `standard_error` may be NaN (unknown): it then counts as zero. With an infinite one nothing is said that
/// hangs on it.
Judgement judge(double value, double standard_error, const Certificate& certificate);

}  // namespace rankscope
