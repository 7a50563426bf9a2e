// Skip and norm beside their formula, for every instruction set of this machine.
#include "kernels/cpu/skip_norm.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/support.h"

namespace rankscope {
namespace {

using Kind = SkipNorm::Kind;
constexpr Kind kinds[] = {Kind::unit, Kind::rms, Kind::layer};
constexpr int64_t gap = 3;  // unused columns behind every row

template <class T>
struct Operands {
  std::vector<T> x, u, gain, bias, dy;
};

template <class T>
struct Results {
  std::vector<T> y, inverse, dsum, dgain, dbias;
  T dgain_terms = 1;  // sum of what dgain adds up, without signs: its roundings are a share of that
};

SkipNorm shape(Kind kind, int64_t rows, int64_t width) {
  SkipNorm n;
  n.kind = kind, n.rows = rows, n.width = width;
  n.x_row = n.u_row = n.y_row = width + gap;
  return n;
}

Operands<double> random_operands(const SkipNorm& n) {
  const int64_t size = n.rows * n.x_row, gains = n.kind == Kind::unit ? 1 : n.width;
  return {random_normals(0, size), random_normals(1, size), random_normals(2, gains),
          random_normals(3, n.width), random_normals(4, size)};
}

template <class T, class From>
Operands<T> converted(const Operands<From>& o) {
  const auto to = [](const std::vector<From>& v) { return std::vector<T>(v.begin(), v.end()); };
  return {to(o.x), to(o.u), to(o.gain), to(o.bias), to(o.dy)};
}

/// Parameter gradients start at one: they are added to.
template <class T>
Results<T> blank(const SkipNorm& n, const Operands<T>& o) {
  return {std::vector<T>(o.x.size()),
          std::vector<T>(static_cast<size_t>(n.rows)),
          std::vector<T>(o.x.size()),
          std::vector<T>(o.gain.size(), T(1)),
          std::vector<T>(static_cast<size_t>(n.width), T(1)),
          T(1)};
}

template <class T>
Results<T> plain(const SkipNorm& n, const Operands<T>& o, bool skip) {
  Results<T> r = blank(n, o);
  const auto width = static_cast<size_t>(n.width);
  const bool unit = n.kind == Kind::unit, layer = n.kind == Kind::layer;
  const T count = static_cast<T>(n.width);
  for (size_t i = 0; i < r.inverse.size(); ++i) {
    const size_t at = i * static_cast<size_t>(n.x_row);
    std::vector<T> z(width), slope(width);
    T mean = 0, squares = 0, along = 0, alike = 0;
    for (size_t c = 0; c < width; ++c) z[c] = skip ? o.x[at + c] + o.u[at + c] : o.x[at + c];
    if (layer)
      for (size_t c = 0; c < width; ++c) mean += z[c] / count;
    for (size_t c = 0; c < width; ++c) z[c] -= mean, squares += z[c] * z[c];
    r.inverse[i] = 1 / std::sqrt(unit ? squares : squares / count + static_cast<T>(n.epsilon));
    for (size_t c = 0; c < width; ++c) {
      const size_t g = unit ? 0 : c;
      z[c] *= r.inverse[i];
      r.y[at + c] = o.gain[g] * z[c] + (layer ? o.bias[c] : T(0));
      r.dgain[g] += o.dy[at + c] * z[c];
      r.dgain_terms += std::fabs(o.dy[at + c] * z[c]);
      if (layer) r.dbias[c] += o.dy[at + c];
      slope[c] = o.gain[g] * o.dy[at + c];
      along += slope[c] * z[c] / (unit ? T(1) : count);
      if (layer) alike += slope[c] / count;
    }
    for (size_t c = 0; c < width; ++c) r.dsum[at + c] = r.inverse[i] * (slope[c] - alike - z[c] * along);
  }
  return r;
}

template <class T>
void run_rows(Isa isa, const SkipNorm& whole, const Operands<T>& o, bool skip, int64_t first, int64_t rows,
              Results<T>& r) {
  const simd::TableOf<T>& table = simd::table_of(isa);
  SkipNorm n = whole;
  n.rows = rows;
  const int64_t at = first * n.x_row;
  const T* u = skip ? o.u.data() + at : nullptr;
  table.skip_norm_forward(n, o.x.data() + at, u, o.gain.data(), o.bias.data(), r.y.data() + at,
                          r.inverse.data() + first);
  table.skip_norm_backward(
      n, o.x.data() + at, u, o.gain.data(), r.inverse.data() + first,
      {o.dy.data() + at, n.y_row, r.dsum.data() + at, n.x_row, r.dgain.data(), r.dbias.data()});
}

template <class T>
Results<T> kernel(Isa isa, const SkipNorm& n, const Operands<T>& o, bool skip = true) {
  Results<T> r = blank(n, o);
  run_rows(isa, n, o, skip, 0, n.rows, r);
  return r;
}

template <class T>
void expect_as_plain() {
  for (const Kind kind : kinds)
    for (const int64_t width : {1, 2, 7, 16, 33, 64, 100})
      for (const int64_t rows : {0, 1, 5})
        for (const bool skip : {true, false})
          for (const Isa isa : available_isas()) {
            const SkipNorm n = shape(kind, rows, width);
            const Operands<T> o = converted<T>(random_operands(n));
            const Results<long double> exact = plain(n, converted<long double>(o), skip);
            const Results<T> simple = plain(n, o, skip), ours = kernel(isa, n, o, skip);
            SCOPED_TRACE(std::string(isa_name(isa)) + ", kind " + std::to_string(static_cast<int>(kind)) +
                         ", width " + std::to_string(width) + ", rows " + std::to_string(rows));
            // The largest element of a row passes through about ten roundings. A width of one is all
            // cancellation in dsum: what is left has the size of inverse * slope, not of the result.
            const int64_t depth = 10;
            const double epsilon = std::numeric_limits<T>::epsilon();
            const double cancelled =
                depth * epsilon * largest(exact.inverse) * largest(o.gain) * largest(o.dy);
            EXPECT_LE(largest_difference(ours.y, exact.y), tolerance(simple.y, exact.y, depth));
            EXPECT_LE(largest_difference(ours.inverse, exact.inverse),
                      tolerance(simple.inverse, exact.inverse, depth));
            EXPECT_LE(largest_difference(ours.dsum, exact.dsum),
                      std::max(cancelled, tolerance(simple.dsum, exact.dsum, depth)));
            EXPECT_LE(largest_difference(ours.dgain, exact.dgain),
                      std::max(tolerance(simple.dgain, exact.dgain, depth),
                               epsilon * static_cast<double>(exact.dgain_terms)));
            EXPECT_LE(largest_difference(ours.dbias, exact.dbias),
                      tolerance(simple.dbias, exact.dbias, depth));
          }
}

TEST(SkipNorm, FloatsAreAsExactAsThePlainFormula) { expect_as_plain<float>(); }
TEST(SkipNorm, DoublesAreAsExactAsThePlainFormula) { expect_as_plain<double>(); }

TEST(SkipNorm, AUnitNormHasTheLengthOfItsGain) {
  for (const Isa isa : available_isas()) {
    const SkipNorm n = shape(Kind::unit, 4, 29);
    Operands<double> o = random_operands(n);
    o.gain = {2.5};
    const Results<double> r = kernel(isa, n, o);
    for (size_t i = 0; i < 4; ++i) {
      double squares = 0;
      for (size_t c = 0; c < 29; ++c) squares += std::pow(r.y[i * (29 + gap) + c], 2);
      EXPECT_NEAR(std::sqrt(squares), 2.5, 1e-14);
    }
  }
}

TEST(SkipNorm, GradientsAreFiniteDifferences) {
  for (const Kind kind : kinds)
    for (const Isa isa : available_isas()) {
      const SkipNorm n = shape(kind, 2, 11);
      Operands<double> o = random_operands(n);
      const Results<double> r = kernel(isa, n, o);
      const auto objective = [&] {
        const std::vector<double> y = kernel(isa, n, o).y;
        double sum = 0;
        for (size_t i = 0; i < y.size(); ++i) sum += y[i] * o.dy[i];
        return sum;
      };
      const auto check = [&](std::vector<double>& operand, const std::vector<double>& gradient,
                             double start) {
        const double h = 1e-5;  // h^2 and 100 epsilon / h are both below 1e-8
        for (size_t i = 0; i < operand.size(); ++i) {
          const double kept = operand[i];
          operand[i] = kept + h;
          const double up = objective();
          operand[i] = kept - h;
          const double down = objective();
          operand[i] = kept;
          EXPECT_NEAR(gradient[i] - start, (up - down) / (2 * h), 1e-8) << isa_name(isa);
        }
      };
      check(o.x, r.dsum, 0), check(o.u, r.dsum, 0), check(o.gain, r.dgain, 1);
      if (kind == Kind::layer) check(o.bias, r.dbias, 1);
    }
}

TEST(SkipNorm, AnySplitOfTheRowsGivesTheSameBits) {
  for (const Kind kind : kinds)
    for (const Isa isa : available_isas()) {
      const SkipNorm n = shape(kind, 7, 37);
      const Operands<float> o = converted<float>(random_operands(n));
      const Results<float> whole = kernel(isa, n, o);
      Results<float> parts = blank(n, o);
      for (const int64_t first : {0, 1, 3})
        run_rows(isa, n, o, true, first, first == 0 ? 1 : first == 1 ? 2 : 4, parts);
      EXPECT_EQ(parts.y, whole.y);
      EXPECT_EQ(parts.dsum, whole.dsum);
      EXPECT_EQ(parts.dgain, whole.dgain);
      EXPECT_EQ(parts.dbias, whole.dbias);
    }
}

TEST(SkipNorm, ThePublicCallTakesTheChosenSet) {
  const SkipNorm n = shape(Kind::layer, 3, 20);
  const Operands<float> o = converted<float>(random_operands(n));
  const Results<float> expected = kernel(chosen_isa(), n, o);
  Results<float> r = blank(n, o);
  skip_norm_forward(n, o.x.data(), o.u.data(), o.gain.data(), o.bias.data(), r.y.data(), r.inverse.data());
  skip_norm_backward(n, o.x.data(), o.u.data(), o.gain.data(), r.inverse.data(), o.dy.data(), n.y_row,
                     r.dsum.data(), n.x_row, r.dgain.data(), r.dbias.data());
  EXPECT_EQ(r.y, expected.y);
  EXPECT_EQ(r.dsum, expected.dsum);
  EXPECT_EQ(r.dbias, expected.dbias);
}

}  // namespace
}  // namespace rankscope
