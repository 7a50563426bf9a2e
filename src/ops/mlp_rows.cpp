#include "ops/mlp_rows.h"

#include <algorithm>

#include "kernels/cpu/bias_relu.h"
#include "ops/gemm.h"

namespace rankscope {
namespace {

constexpr int64_t kRows = 256, kUnits = 256;  // of a piece

// What a piece covers, and where it lies among the kept ones.
struct Piece {
  int64_t row, rows, unit, units;
  int64_t at(int64_t hidden) const { return row * hidden + rows * unit; }
};

template <class Each>
void for_each_piece(int64_t rows, int64_t hidden, const Each& each) {
  for (int64_t row = 0; row < rows; row += kRows)
    for (int64_t unit = 0; unit < hidden; unit += kUnits)
      each(Piece{row, std::min(kRows, rows - row), unit, std::min(kUnits, hidden - unit)});
}

}  // namespace

int64_t mlp_workspace(int64_t rows, int64_t hidden) {
  return std::min(kRows, rows) * std::min(kUnits, hidden) + kUnits;  // a piece, and a bias of zeros
}

template <class T>
void mlp_forward(const MlpRows<T>& n, T* y, T* kept, T* work) {
  T* no_bias = work;
  std::fill_n(no_bias, kUnits, T(0));
  for_each_piece(n.rows, n.hidden, [&](const Piece& p) {
    T* h = kept ? kept + p.at(n.hidden) : work + kUnits;
    gemm(Turn::no, Turn::yes, p.rows, p.units, n.in, T(1), {n.x + p.row * n.in, n.in},
         {n.W_in + p.unit * n.in, n.in}, T(0), {h, p.units});
    bias_relu(p.rows, p.units, n.b_in ? n.b_in + p.unit : no_bias, h, p.units);
    gemm(Turn::no, Turn::yes, p.rows, n.out, p.units, T(1), {h, p.units}, {n.W_out + p.unit, n.hidden}, T(1),
         {y + p.row * n.out, n.out});
  });
}

template <class T>
void mlp_backward(const MlpRows<T>& n, const T* kept, const T* dy, const MlpGradients<T>& d, T* work) {
  T* dh = work;
  for_each_piece(n.rows, n.hidden, [&](const Piece& p) {
    const T *h = kept + p.at(n.hidden), *dy_rows = dy + p.row * n.out, *x_rows = n.x + p.row * n.in;
    gemm(Turn::yes, Turn::no, n.out, p.units, p.rows, T(1), {dy_rows, n.out}, {h, p.units}, T(1),
         {d.W_out + p.unit, n.hidden});
    gemm(Turn::no, Turn::no, p.rows, p.units, n.out, T(1), {dy_rows, n.out}, {n.W_out + p.unit, n.hidden},
         T(0), {dh, p.units});
    bias_relu_backward(p.rows, p.units, h, p.units, dh, p.units, d.b_in ? d.b_in + p.unit : nullptr);
    gemm(Turn::yes, Turn::no, p.units, n.in, p.rows, T(1), {dh, p.units}, {x_rows, n.in}, T(1),
         {d.W_in + p.unit * n.in, n.in});
    if (d.x)
      gemm(Turn::no, Turn::no, p.rows, n.in, p.units, T(1), {dh, p.units}, {n.W_in + p.unit * n.in, n.in},
           T(1), {d.x + p.row * n.in, n.in});
  });
}

#define RANKSCOPE_FOR(T)                                    \
  template void mlp_forward(const MlpRows<T>&, T*, T*, T*); \
  template void mlp_backward(const MlpRows<T>&, const T*, const T*, const MlpGradients<T>&, T*)
RANKSCOPE_FOR(float);
RANKSCOPE_FOR(double);
#undef RANKSCOPE_FOR

}  // namespace rankscope
