#include "device.h"
#include "kernels/cuda/train.h"

namespace rankscope {
namespace {

class CudaAdamW : public OnDevice {};

cuda::AdamWSegment dense(const DeviceBuffer<float>& gradient, int64_t count) {
  return {.gradient = gradient.data(), .offset = 0, .rows = 1, .columns = count, .trial_stride = count};
}

// The textbook update, in the precision T.
template <class T>
std::vector<T> textbook(const AdamW& rule, const std::vector<float>& start,
                        const std::vector<float>& gradient, const std::vector<float>& lr) {
  std::vector<T> p(start.begin(), start.end()), m(p.size()), v(p.size());
  for (size_t step = 0; step < lr.size(); ++step)
    for (size_t i = 0; i < p.size(); ++i) {
      const T g = T(gradient[i]) * T(step + 1), b1 = rule.beta1, b2 = rule.beta2, rate = lr[step];
      p[i] -= rate * T(rule.weight_decay) * p[i];
      m[i] = b1 * m[i] + (1 - b1) * g;
      v[i] = b2 * v[i] + (1 - b2) * g * g;
      const T first = m[i] / (1 - std::pow(b1, T(step + 1))), second = v[i] / (1 - std::pow(b2, T(step + 1)));
      p[i] -= rate * first / (std::sqrt(second) + T(rule.epsilon));
    }
  return p;
}

TEST_F(CudaAdamW, FollowsTheTextbookWithEachTrialsOwnRate) {
  const AdamW rule{0.9f, 0.95f, 1e-8f, 0.1f};
  const std::vector<float> lr{1e-3f, 2e-3f, 3e-3f, 0.1f, 0.05f, 0.0f};
  const std::vector<std::vector<float>> rates{{1e-3f, 2e-3f, 3e-3f}, {0.1f, 0.05f, 0.0f}};
  for (const int64_t count : {1, 5, 4096, 5001}) {
    const auto start = random_floats(2 * count, 1), gradient = random_floats(2 * count, 2);
    const DeviceBuffer<float> parameter(start), m(std::vector<float>(2 * count)),
        v(std::vector<float>(2 * count)), device_lr(lr);
    const DeviceBuffer<int32_t> alive(std::vector<int32_t>{1, 1});
    for (int64_t step = 0; step < 3; ++step) {
      auto g = gradient;
      for (float& x : g) x *= static_cast<float>(step + 1);
      const DeviceBuffer<float> device_gradient(g);
      const DeviceBuffer<int64_t> steps({step, step});
      const cuda::AdamWSegment segment = dense(device_gradient, count);
      cuda::adamw_update(rule, 2, count, steps.data(), device_lr.data(), 3, alive.data(), {&segment, 1},
                         parameter.data(), m.data(), v.data(), nullptr);
    }
    const auto ours = parameter.values();
    for (int64_t t = 0; t < 2; ++t) {
      const auto part = [&](const std::vector<float>& x) {
        return std::vector<float>(x.begin() + t * count, x.begin() + (t + 1) * count);
      };
      const auto exact = textbook<double>(rule, part(start), part(gradient), rates[t]);
      const auto plain = textbook<float>(rule, part(start), part(gradient), rates[t]);
      expect_exact_as_float(part(ours), plain, exact,
                            "trial " + std::to_string(t) + " of " + std::to_string(count));
    }
  }
}

TEST_F(CudaAdamW, LeavesATrialAloneThatIsDeadOrHasNoRateLeft) {
  const int64_t trials = 4, count = 10;
  auto start = random_floats(trials * count, 1);
  for (float& x : start) x = std::abs(x);  // a second moment is not negative
  const DeviceBuffer<float> parameter(start), gradient(random_floats(trials * count, 2)), m(start), v(start),
      lr(std::vector<float>(trials, 1e-2f));
  const DeviceBuffer<int32_t> alive(std::vector<int32_t>{1, 0, 1, 1});
  const DeviceBuffer<int64_t> steps({0, 0, 1, -1});
  const cuda::AdamWSegment segment = dense(gradient, count);
  cuda::adamw_update({}, trials, count, steps.data(), lr.data(), 1, alive.data(), {&segment, 1},
                     parameter.data(), m.data(), v.data(), nullptr);
  for (const auto* buffer : {&parameter, &m, &v}) {
    const auto after = buffer->values();
    for (int64_t i = 0; i < trials * count; ++i) EXPECT_EQ(after[i] == start[i], i >= count) << i;
  }
}

// A parameter's shape and its gradient's strides; floats left free in front of the parameter, in front of the
// gradient and behind each trial's part of it.
struct Shape {
  int64_t rows, columns, row_stride = 0, column_stride = 1;
  int64_t before_parameter = 0, before_gradient = 0, behind_trial = 0;
};

const std::vector<Shape> kShapes{
    {1, 1},                    // a gain
    {1, 1, 0, 1, 3, 1},        // one at an odd place
    {0, 7},                    // nothing
    {7, 0},                    //
    {1, 4096},                 // dense, whole blocks
    {1, 5001},                 // dense, odd
    {24, 64, 72},              // the weights beside a bias
    {1, 24, 0, 72, 8},         // that bias
    {24, 1, 72},               // the same, said otherwise
    {100, 64, 72, 1, 0, 3},    // unaligned: where the gradient starts
    {100, 64, 72, 1, 1},       // ... where the parameter starts
    {24, 64, 72, 1, 0, 0, 1},  // ... where the trials start
    {32, 12, 13},              // ... where the rows start
    {5, 7, 9},                 // odd columns
    {64, 96, 1, 64, 32},       // turned, whole tiles
    {65, 100, 1, 68, 32},      // turned, with rests
    {70, 33, 1, 70},           // turned, odd columns
    {66, 36, 2, 140, 2, 1},    // turned, spread, unaligned
    {3, 40, 1, 3},             // turned, low
    {9, 8, 0, 1},              // one row for all
};

// The shapes one behind another, aligned as the trainer's, and where they start.
struct Stack {
  int64_t trials, size = 0;
  std::vector<Shape> shapes;
  std::vector<int64_t> offsets;
  Stack(int64_t trials_, int64_t repeats) : trials(trials_) {
    for (int64_t r = 0; r < repeats; ++r)
      for (const Shape& s : kShapes) {
        shapes.push_back(s);
        offsets.push_back(size + s.before_parameter);
        size = (offsets.back() + s.rows * s.columns + 31) / 32 * 32;
      }
  }
};

// The same random gradients twice: one dense row a trial, and each as its shape says, poison between.
struct Gradients {
  std::vector<float> packed, spread;
  std::vector<bool> covered;
  std::vector<int64_t> starts;               // of each gradient in `spread`
  std::vector<cuda::AdamWSegment> segments;  // without their pointers
  explicit Gradients(const Stack& stack)
      : packed(random_floats(stack.trials * stack.size, 5)), covered(stack.size) {
    for (size_t i = 0; i < stack.shapes.size(); ++i) {
      const Shape& s = stack.shapes[i];
      const int64_t trial_stride = s.rows * s.row_stride + s.columns * s.column_stride + s.behind_trial;
      starts.push_back((static_cast<int64_t>(spread.size()) + 3) / 4 * 4 + s.before_gradient);
      spread.resize(starts.back() + stack.trials * trial_stride, poison());
      for (int64_t t = 0; t < stack.trials; ++t)
        for (int64_t k = 0; k < s.rows * s.columns; ++k) {
          float& value = packed[t * stack.size + stack.offsets[i] + k];
          float& g = spread[starts.back() + t * trial_stride + k / s.columns * s.row_stride +
                            k % s.columns * s.column_stride];
          if (is_poison(g)) g = value;
          value = g;  // what several elements share is the first one's
          covered[stack.offsets[i] + k] = true;
        }
      segments.push_back({.gradient = nullptr,
                          .offset = stack.offsets[i],
                          .rows = s.rows,
                          .columns = s.columns,
                          .row_stride = s.row_stride,
                          .column_stride = s.column_stride,
                          .trial_stride = trial_stride});
    }
  }
};

// Whatever the layout, the bits are those of one dense gradient; between the parameters nothing moves.
void expect_bits_of_dense(const Stack& stack) {
  const int64_t all = stack.trials * stack.size, rates = 5;
  std::vector<std::vector<float>> start{random_floats(all, 1), random_floats(all, 2), random_floats(all, 3)};
  for (float& x : start[2]) x *= x;
  std::vector<int64_t> step_values(stack.trials);
  std::vector<int32_t> alive_values(stack.trials);
  for (int64_t t = 0; t < stack.trials; ++t) {
    step_values[t] = (3 * t + 1) % rates;
    alive_values[t] = t % 3 != 1;
  }
  const DeviceBuffer<int64_t> steps(step_values);
  const DeviceBuffer<int32_t> alive(alive_values);
  const DeviceBuffer<float> lr(random_floats(stack.trials * rates, 4));
  const auto update = [&](const std::vector<cuda::AdamWSegment>& segments) {
    const DeviceBuffer<float> p(start[0]), m(start[1]), v(start[2]);
    cuda::adamw_update({0.9f, 0.999f, 1e-8f, 0.1f}, stack.trials, stack.size, steps.data(), lr.data(), rates,
                       alive.data(), segments, p.data(), m.data(), v.data(), nullptr);
    return std::vector{p.values(), m.values(), v.values()};
  };

  Gradients gradients(stack);
  const DeviceBuffer<float> packed(gradients.packed), spread(gradients.spread);
  for (size_t i = 0; i < gradients.segments.size(); ++i)
    gradients.segments[i].gradient = spread.data() + gradients.starts[i];
  const auto ours = update(gradients.segments), whole = update({dense(packed, stack.size)});
  for (size_t k = 0; k < start.size(); ++k)
    for (int64_t i = 0; i < all; ++i) {
      const bool moves = gradients.covered[i % stack.size] && alive_values[i / stack.size] != 0;
      ASSERT_EQ(ours[k][i], (moves ? whole : start)[k][i])
          << "buffer " << k << ", trial " << i / stack.size << ", place " << i % stack.size;
    }
}

TEST_F(CudaAdamW, GivesTheSameBitsWhereverTheGradientsLie) {
  for (const int64_t trials : {int64_t{1}, int64_t{3}, cuda::kMaxTrials})
    expect_bits_of_dense(Stack(trials, 1));
}

TEST_F(CudaAdamW, TakesMoreGradientsThanOneLaunch) { expect_bits_of_dense(Stack(3, 12)); }

TEST_F(CudaAdamW, AStackOfOddSizeIsReadFloatByFloat) {
  Stack odd(3, 1);
  odd.size += 1;
  expect_bits_of_dense(odd);
}

TEST_F(CudaAdamW, NoGradientsAndNoTrialsAreNoWork) {
  EXPECT_NO_THROW(
      cuda::adamw_update({}, 2, 8, nullptr, nullptr, 1, nullptr, {}, nullptr, nullptr, nullptr, nullptr));
  const cuda::AdamWSegment empty{.rows = 0, .columns = 3}, some{.rows = 1, .columns = 3};
  EXPECT_NO_THROW(cuda::adamw_update({}, 2, 8, nullptr, nullptr, 1, nullptr, {&empty, 1}, nullptr, nullptr,
                                     nullptr, nullptr));
  EXPECT_NO_THROW(cuda::adamw_update({}, 0, 8, nullptr, nullptr, 1, nullptr, {&some, 1}, nullptr, nullptr,
                                     nullptr, nullptr));
}

}  // namespace
}  // namespace rankscope
