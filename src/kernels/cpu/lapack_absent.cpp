// Stands in where no LAPACK is linked; spectral/dense.cpp then asks LibTorch.
#include "base/error.h"
#include "kernels/cpu/lapack.h"

namespace rankscope::lapack {
namespace {
[[noreturn]] void absent() { throw Error("this build has no LAPACK of its own"); }
}  // namespace

bool have_lapack() { return false; }
bool singular_values(double*, int64_t, int64_t, double*) { absent(); }
bool symmetric_eigenvalues(double*, int64_t, double*) { absent(); }
void gram(const double*, int64_t, int64_t, double*) { absent(); }
void gram_of_columns(const double*, int64_t, int64_t, double*) { absent(); }
void triangle(double*, int64_t, int64_t, double*) { absent(); }
bool hessenberg_eigenvalues(double*, int64_t, double*, double*) { absent(); }
void multiply_nt(const double*, const double*, int64_t, int64_t, int64_t, double*) { absent(); }

}  // namespace rankscope::lapack
