// Convex hull: the label of a point is whether it is a corner of the hull of its set.
#include "tasks/support/hull.h"
#include "base/philox.h"
#include "base/stream_name.h"
#include "tasks/token_task.h"

namespace rankscope {
namespace {

constexpr double kSide = 10, kShift = 3.3;  // uniform in a square, the whole set shifted by a normal

TokenSet draw_hull(const TokenTaskSpec& spec, int64_t sequences, std::string_view which) {
  const Philox random{spec.seed, stream_of(which), 0}, shifts{spec.seed, stream_of(which), 1};
  TokenSet out{.tokens = spec.tokens};
  const auto width = static_cast<size_t>(2 * spec.tokens);
  for (size_t s = 0; s < static_cast<size_t>(sequences); ++s) {
    std::vector<double> set(width);
    for (size_t i = 0; i < width; ++i) set[i] = kSide * random.uniform(s * width + i);
    const std::vector<int64_t> corners = hull_corners(set);  // a shift leaves them as they are
    for (size_t i = 0; i < width; ++i) set[i] += kShift * shifts.normal(2 * s + i % 2);
    out.points.insert(out.points.end(), set.begin(), set.end());
    out.labels.insert(out.labels.end(), corners.begin(), corners.end());
  }
  return out;
}

TokenRecipe hull_recipe(bool reference) {
  TokenRecipe r{.heads = 3, .width = 84, .deep_input = true, .tokens = 10, .train = 10000, .test = 300};
  r.l2 = 1e-3;
  r.schedule = TokenRecipe::Schedule::steps;
  r.epochs = reference ? 70 : 12;  // at ten times the learning rate
  r.lr = reference ? 1e-5 : 1e-4;
  return r;
}

TokenData make_hull(const TokenTaskSpec& spec) {
  return {.train = draw_hull(spec, spec.train, "hull train"),
          .test = draw_hull(spec, spec.test, "hull test"),
          .vocabulary = 0,
          .classes = 2};
}

}  // namespace

extern const TokenTask token_task_hull{.name = "hull",
                                       .summary = "which points are corners of the convex hull",
                                       .recipe = hull_recipe,
                                       .make = make_hull};

}  // namespace rankscope
