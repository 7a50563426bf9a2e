// What samples say about a rise of the loss: how large it may be, and whether it is below a budget. Knows
// nothing of torch.
//
// Two networks read the same samples, so the rise is a mean of differences, and what samples have in common
// falls out of its error. A mean below the budget says little by itself: of many changes some look free by
// chance, and a search finds exactly those. What counts is the upper end of the confidence interval.
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope {

/// How much more one network's loss is than another's, over tokens.
struct Rise {
  double mean = 0;
  double error = 0;    // NaN: one sample says nothing about it
  double freedom = 0;  // of Student's t: samples less one, fewer where they differ in length
  /// With chance `level` or less the true rise is larger than this, or smaller than that.
  double upper(double level) const;
  double lower(double level) const;
  /// The fewest samples like these that would put the upper end at `bound` or below, were mean and spread to
  /// stay; infinite where the mean is not below it.
  double samples_for(double bound, double level) const;
};

/// By sample: the loss of either network, and the tokens behind it.
Rise paired_rise(const std::vector<double>& full, const std::vector<double>& other,
                 const std::vector<int64_t>& tokens);

/// The chance of being wrong that a search may take anywhere, and that of its k-th look, k = 1, 2, ...: they
/// add up to it however often the search looks.
constexpr double kSearchLevel = 0.05;
double level_of_look(int64_t look);

/// What samples that no search has read say of a rise and a budget. Fewer than kFewSamples decide nothing, as
/// in a verdict (few_samples).
enum class Held { within, over, undecided };
constexpr double kHeldLevel = 0.05;
constexpr int64_t kFewSamples = 4;
Held held_against(const Rise& rise, int64_t samples, double budget);

}  // namespace rankscope
