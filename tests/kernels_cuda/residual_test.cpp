// Against plain loops in double precision, as lenses/residual.cpp has them on the CPU.
#include "kernels/cuda/residual.h"

#include <algorithm>

#include "device.h"

namespace rankscope {
namespace {

class CudaResidual : public OnDevice {};

struct Case {
  cuda::ResidualShape shape;
  std::vector<float> x;
  std::vector<int64_t> index;
  std::vector<double> present, content;
};

/// Tokens in reverse order; the last of every second sample is missing, every third is no content, and the
/// second is massive.
Case random_case(int64_t samples, int64_t tokens, int64_t width) {
  const Philox random{7, 0, 0};
  const int64_t rows = samples * tokens;
  Case out{{samples, tokens, width, 20.0},
           std::vector<float>(rows * width),
           std::vector<int64_t>(rows),
           std::vector<double>(rows, 1.0),
           std::vector<double>(rows, 1.0)};
  for (size_t i = 0; i < out.x.size(); ++i) out.x[i] = static_cast<float>(3 * random.uniform(i) - 1);
  for (int64_t i = 0; i < rows; ++i) {
    out.index[i] = rows - 1 - i;
    const int64_t token = i % tokens, sample = i / tokens;
    if (sample % 2 == 1 && token == tokens - 1) out.present[i] = out.content[i] = 0;
    if (i % 3 == 0) out.content[i] = 0;
    if (token == 1)
      for (int64_t j = 0; j < width; ++j) out.x[out.index[i] * width + j] *= 1000;
  }
  return out;
}

double norm_of(const Case& c, int64_t token) {
  const float* from = c.x.data() + c.index[token] * c.shape.width;
  double square = 0;
  for (int64_t j = 0; j < c.shape.width; ++j) square += static_cast<double>(from[j]) * from[j];
  return std::sqrt(square);
}

/// Whether the token counts under the rule.
bool counts(const Case& c, int64_t rule, int64_t sample, int64_t token) {
  const int64_t first = sample * c.shape.tokens, i = first + token;
  if (rule == 0) return c.present[i] != 0;
  std::vector<double> norms;
  for (int64_t t = 0; t < c.shape.tokens; ++t)
    if (c.present[first + t] != 0 && norm_of(c, first + t) > 0) norms.push_back(norm_of(c, first + t));
  std::sort(norms.begin(), norms.end());
  const double median = norms.empty() ? 0 : 0.5 * (norms[(norms.size() - 1) / 2] + norms[norms.size() / 2]);
  return c.content[i] != 0 && !(norm_of(c, i) > c.shape.massive * median);
}

double composite(const std::vector<std::vector<double>>& x) {
  double row = 0, column = 0;
  for (const auto& token : x) {
    double sum = 0;
    for (const double v : token) sum += std::fabs(v);
    row = std::max(row, sum);
  }
  for (size_t j = 0; j < x.front().size(); ++j) {
    double sum = 0;
    for (const auto& token : x) sum += std::fabs(token[j]);
    column = std::max(column, sum);
  }
  return std::sqrt(row * column);
}

std::vector<double> plain(const Case& c, int64_t rule, int64_t sample) {
  const int64_t tokens = c.shape.tokens, width = c.shape.width;
  std::vector<std::vector<double>> x;
  for (int64_t t = 0; t < tokens; ++t)
    if (counts(c, rule, sample, t)) {
      const float* from = c.x.data() + c.index[sample * tokens + t] * width;
      x.emplace_back(from, from + width);
    }
  std::vector<double> out(cuda::kResidualNumbers, std::numeric_limits<double>::quiet_NaN());
  if (x.size() < 2) return out;
  std::vector<double> mean(width, 0.0);
  double whole = 0, rest = 0, offset = 0;
  for (const auto& token : x)
    for (int64_t j = 0; j < width; ++j) {
      mean[j] += token[j] / static_cast<double>(x.size());
      whole += token[j] * token[j];
    }
  const double size = composite(x);
  for (auto& token : x)
    for (int64_t j = 0; j < width; ++j) {
      token[j] -= mean[j];
      rest += token[j] * token[j];
    }
  for (const double m : mean) offset += m * m;
  if (!std::isfinite(whole)) return out;
  out = {composite(x), composite(x) / size, std::sqrt(rest),
         std::sqrt(static_cast<double>(x.size()) * offset), std::sqrt(rest / whole)};
  return out;
}

std::vector<double> there(const Case& c) {
  const DeviceBuffer<float> x(c.x);
  const DeviceBuffer<int64_t> index(c.index);
  const DeviceBuffer<double> present(c.present), content(c.content),
      out(std::vector<double>(cuda::kResidualRules * c.shape.samples * cuda::kResidualNumbers, -1.0));
  cuda::residuals(c.shape, x.data(), index.data(), present.data(), content.data(), out.data(), nullptr);
  return out.values();
}

void expect_same(const Case& c) {
  const std::vector<double> got = there(c);
  // Sums of n numbers in double precision, in another order: n roundings of the largest at most.
  const double close = 4e-16 * static_cast<double>(c.shape.tokens * c.shape.width + 8);
  for (int64_t r = 0; r < cuda::kResidualRules; ++r)
    for (int64_t s = 0; s < c.shape.samples; ++s) {
      const std::vector<double> want = plain(c, r, s);
      for (int64_t k = 0; k < cuda::kResidualNumbers; ++k) {
        const double value = got[(r * c.shape.samples + s) * cuda::kResidualNumbers + k];
        if (std::isnan(want[k])) {
          EXPECT_TRUE(std::isnan(value)) << k;
        } else {
          EXPECT_NEAR(value, want[k], close * (1 + std::fabs(want[k])))
              << "number " << k << " of sample " << s;
        }
      }
    }
}

TEST_F(CudaResidual, IsThatOfPlainLoopsAtOddShapes) {
  for (const int64_t tokens : {1, 2, 7, 33, 130})
    for (const int64_t width : {1, 5, 64, 777}) expect_same(random_case(3, tokens, width));
}

TEST_F(CudaResidual, SaysNothingOfASampleWithATokenThatIsNotFinite) {
  Case c = random_case(2, 9, 20);
  c.x[c.index[4] * 20 + 3] = std::numeric_limits<float>::infinity();  // of the first sample
  const std::vector<double> got = there(c);
  for (int64_t k = 0; k < cuda::kResidualNumbers; ++k) EXPECT_TRUE(std::isnan(got[k])) << k;
  EXPECT_FALSE(std::isnan(got[cuda::kResidualNumbers]));  // the second sample
}

TEST_F(CudaResidual, RefusesTokensThatItsMemoryDoesNotHold) {
  EXPECT_THROW(cuda::residuals({1, 1, 30'000, 20.0}, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
               std::exception);
}

}  // namespace
}  // namespace rankscope
