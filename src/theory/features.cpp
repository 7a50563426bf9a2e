#include "theory/features.h"

#include <cmath>
#include <string>

#include "base/error.h"
#include "base/philox.h"
#include "theory/kernel.h"

namespace rankscope {
namespace {

constexpr Construction kAll[] = {Construction::gaussian, Construction::uniform, Construction::equal,
                                 Construction::as_coded};

double dot(const double* a, const double* b, int64_t d) {
  double sum = 0;
  for (int64_t i = 0; i < d; ++i) sum += a[i] * b[i];
  return sum;
}

void draw_unit(const Philox& words, uint64_t vector, int64_t d, double* out) {
  for (int64_t i = 0; i < d; ++i)
    out[i] = words.normal(vector * static_cast<uint64_t>(d) + static_cast<uint64_t>(i));
  const double norm = std::sqrt(dot(out, out, d));
  for (int64_t i = 0; i < d; ++i) out[i] /= norm;
}

// Turns a unit vector k into one at the given cosine from q; without `renormalise` the part across q keeps
// the length that the projection left.
void lean(const double* q, double* k, int64_t d, double cosine, bool renormalise) {
  const double along = dot(q, k, d);
  const double across = renormalise ? std::sqrt(1 - along * along) : 1;
  const double sine = std::sqrt(1 - cosine * cosine);
  for (int64_t i = 0; i < d; ++i) k[i] = cosine * q[i] + sine * (k[i] - along * q[i]) / across;
}

}  // namespace

std::string_view to_string(Construction construction) {
  switch (construction) {
    case Construction::gaussian:
      return "gaussian";
    case Construction::uniform:
      return "uniform";
    case Construction::equal:
      return "equal";
    case Construction::as_coded:
      return "as-coded";
  }
  return "?";
}

Construction construction_named(std::string_view name) {
  std::vector<std::string> known;
  for (const Construction c : kAll) {
    if (to_string(c) == name) return c;
    known.emplace_back(to_string(c));
  }
  throw unknown_name("construction", name, known);
}

Heads random_heads(Construction construction, int64_t d, int64_t count, uint64_t seed) {
  const Philox vectors{.seed = seed, .stream = 0x68656164}, cosines{.seed = seed, .stream = 0x636f7369};
  const auto size = static_cast<size_t>(count * d);
  Heads heads{
      .d = d, .count = count, .q = std::vector<double>(size), .k = std::vector<double>(size), .cosine = {}};
  for (int64_t h = 0; h < count; ++h) {
    double* q = heads.q.data() + h * d;
    double* k = heads.k.data() + h * d;
    const auto index = static_cast<uint64_t>(h);
    draw_unit(vectors, 2 * index, d, q);
    draw_unit(vectors, 2 * index + 1, d, k);
    double cosine = dot(q, k, d);
    if (construction == Construction::equal) {
      std::copy(q, q + d, k);
      cosine = 1;
    } else if (construction != Construction::gaussian) {
      cosine = 2 * cosines.uniform(index) - 1;
      lean(q, k, d, cosine, construction == Construction::uniform);
    }
    heads.cosine.push_back(cosine);
  }
  return heads;
}

std::vector<double> against_target(const Heads& heads) {
  const HeadAgainstTarget target(heads.d);
  std::vector<double> b;
  for (const double cosine : heads.cosine) b.push_back(target.at(cosine));
  return b;
}

}  // namespace rankscope
