// The delta rule chunk by chunk. With S the state before a chunk, b what is written, A = K K^T, and G, before
// and D as in chunk.h,
//   (1 + M) U = diag(b) (V - diag(before) K S),  M = diag(b) G A below the diagonal,
//   out = tril(G Q K^T) U + diag(before) Q S,    S <- kept S + K^T diag(D) U.
// The way back goes through these lines in reverse order, from the states that the way forth has left.
#include "kernels/cpu/simd/chunk.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/scratch.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

template <class T>
class DeltaRule {
 public:
  explicit DeltaRule(const DeltaAttention& a) : a_(a), d_(a.width_qk), e_(a.width_v) {
    const auto lay_out = [&](Room<T> r) {
      kept_ = reinterpret_cast<Kept<T>*>(r.take(sizeof(Kept<T>) / sizeof(T)));
      qt_ = r.take(d_ * kC), kt_ = r.take(d_ * kC), raw_ = r.take(d_ * kC), dkt_ = r.take(d_ * kC);
      turned_ = r.take(d_ * kC);
      miss_ = r.take(kC * e_), u_ = r.take(kC * e_), du_ = r.take(kC * e_), et_ = r.take(e_ * kC);
      ut_ = r.take(e_ * kC);
      A_ = r.take(kC * kC), M_ = r.take(kC * kC), P_ = r.take(kC * kC);
      dP_ = r.take(kC * kC), dM_ = r.take(kC * kC);
      dG_ = r.take(kC * kC);
      state_ = r.take(d_ * e_);
      return r.taken();
    };
    lay_out(Room<T>(scratch(lay_out(Room<T>()))));
  }

  void forward(const DeltaInputs<T>& in, T* out, T* states) {
    const int64_t chunks = running_chunks(a_.tokens);
    for (int64_t i = 0; i < d_ * e_; ++i) state_[i] = 0;
    for (int64_t c = 0; c < chunks; ++c) {
      if (states != nullptr)
        for (int64_t i = 0; i < d_ * e_; ++i) states[c * d_ * e_ + i] = state_[i];
      const int64_t n = begin(c, in);
      solve(n, in, state_, c > 0);
      const T* qc = in.q + at_ * d_;
      T* oc = out + at_ * e_;
      lower_products(n, d_, qc, d_, kt_, P_);
      keep_lower(n, P_);
      times_lower(n, e_, P_, u_, e_, oc, e_, false);
      if (c > 0) {
        turn(n, d_, qc, d_, qt_, kC);
        if (!kept_->all) scale_lanes(d_, n, kept_->before, qt_);
        gemm<T>(n, e_, d_, {qt_, 1, kC}, state_, e_, oc, e_, true);
      }
      if (c + 1 == chunks) break;
      if (!kept_->all) {
        scale_lanes(d_, n, kept_->to_end, kt_);
        scale_all(d_ * e_, kept_->before[n - 1], state_);
      }
      gemm<T>(d_, e_, n, {kt_, kC, 1}, u_, e_, state_, e_, true);
    }
  }

  void backward(const DeltaInputs<T>& in, const T* states, const T* dout, const DeltaGradients<T>& to) {
    const int64_t chunks = running_chunks(a_.tokens);
    T* dstate = state_;
    for (int64_t i = 0; i < d_ * e_; ++i) dstate[i] = 0;
    for (int64_t c = chunks - 1; c >= 0; --c) {
      const int64_t n = begin(c, in);
      const T *S = states + c * d_ * e_, *qc = in.q + at_ * d_, *kc = in.k + at_ * d_, *b = in.write + at_,
              *doc = dout + at_ * e_;
      T *dq = to.q + at_ * d_, *dk = to.k + at_ * d_, *dv = to.v + at_ * e_, *dwrite = to.write + at_;
      const bool later = c + 1 < chunks, earlier = c > 0;
      solve(n, in, S, earlier);
      turn(n, e_, u_, e_, ut_, kC);
      turn(n, d_, qc, d_, qt_, kC);
      lower_products(n, d_, qc, d_, kt_, P_);  // scores, until G is on them
      lower_products(n, e_, doc, e_, ut_, dP_);

      // dU = P^T dout + diag(D) K dS', then (1 + M)^T dR = dU.
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j) dG_[i * kC + j] = dP_[i * kC + j] * P_[i * kC + j];
      keep_lower(n, P_);
      keep_lower(n, dP_);
      times_lower_turned(n, e_, P_, doc, e_, du_, e_, false);
      if (later) {
        gemm<T>(n, e_, d_, {kt_, 1, kC}, dstate, e_, dv, e_);  // into dv, which is not written yet
        for (int64_t i = 0; i < n; ++i) {
          const T D = kept_->all ? T(1) : kept_->to_end[i];
          for (int64_t x = 0; x < e_; ++x) du_[i * e_ + x] += D * dv[i * e_ + x];
        }
      }
      solve_turned(n, du_);

      // Through the values, what is written, and M.
      turn(n, e_, du_, e_, et_, kC);
      lower_products(n, e_, du_, e_, ut_, dM_);
      for (int64_t i = 0; i < n; ++i) {
        T written = 0;
        for (int64_t x = 0; x < e_; ++x) {
          written += du_[i * e_ + x] * miss_[i * e_ + x];
          dv[i * e_ + x] = b[i] * du_[i * e_ + x];
        }
        T *dM = dM_ + i * kC, *dG = dG_ + i * kC;
        const T *A = A_ + i * kC, *G = kept_->G + i * kC;
        for (int64_t j = 0; j < i; ++j) {
          const T g = kept_->all ? T(1) : G[j];
          written -= dM[j] * g * A[j];
          dG[j] -= dM[j] * b[i] * A[j];
          dM[j] *= -b[i] * g;  // from here on the gradient of A
        }
        for (int64_t j = i; j < n; ++j) dM[j] = 0;
        dwrite[i] = written;
      }

      // Through the products of queries and keys, and of keys with each other.
      times_lower(n, d_, dP_, kc, d_, dq, d_, false);
      times_lower_turned(n, d_, dP_, qc, d_, dk, d_, false);
      times_lower(n, d_, dM_, kc, d_, dk, d_, true);
      times_lower_turned(n, d_, dM_, kc, d_, dk, d_, true);

      // Through the states before and behind the chunk.
      T dbefore[kC];
      for (int64_t i = 0; i < n; ++i) dbefore[i] = 0;
      for (int64_t i = 0; i < d_ * kC; ++i) dkt_[i] = 0;
      if (later) {
        gemm<T>(d_, n, e_, {dstate, e_, 1}, ut_, kC, raw_, kC);
        add_dots(n - 1, kt_, raw_, dG_ + (n - 1) * kC);
        if (!kept_->all) scale_lanes(d_, n, kept_->to_end, raw_);
        add(n, raw_, dkt_, T(1));
        if (earlier)
          for (int64_t i = 0; i < d_ * e_; ++i) dbefore[n - 1] += dstate[i] * S[i];
      }
      T carried[kC];  // b times before
      for (int64_t i = 0; i < n; ++i) carried[i] = kept_->all ? b[i] : b[i] * kept_->before[i];
      if (earlier) {
        gemm<T>(d_, n, e_, {S, e_, 1}, et_, kC, raw_, kC);  // S dR^T
        T reads[kC];
        for (int64_t i = 0; i < n; ++i) reads[i] = 0;
        add_dots(n, kt_, raw_, reads);
        for (int64_t i = 0; i < n; ++i) dbefore[i] -= b[i] * reads[i];
        scale_lanes(d_, n, carried, raw_);
        add(n, raw_, dkt_, T(-1));
        turn(n, e_, doc, e_, et_, kC);
        gemm<T>(d_, n, e_, {S, e_, 1}, et_, kC, raw_, kC);  // S dout^T
        add_dots(n, qt_, raw_, dbefore);
        if (!kept_->all) scale_lanes(d_, n, kept_->before, raw_);
        add_turned(n, d_, raw_, dq, turned_);
        // dS = kept dS' + (before Q)^T dout - (b before K)^T dR
        if (!kept_->all) {
          scale_all(d_ * e_, kept_->before[n - 1], dstate);
          scale_lanes(d_, n, kept_->before, qt_);
        }
        gemm<T>(d_, e_, n, {qt_, kC, 1}, doc, e_, dstate, e_, true);
        for (int64_t i = 0; i < n; ++i) carried[i] = -carried[i];
        scale_lanes(d_, n, carried, kt_);
        gemm<T>(d_, e_, n, {kt_, kC, 1}, du_, e_, dstate, e_, true);
      }
      if (later || earlier) add_turned(n, d_, dkt_, dk, turned_);
      if (to.keep != nullptr) through_kept(n, in.keep + at_, dbefore, to.keep + at_);
    }
  }

 private:
  int64_t begin(int64_t chunk, const DeltaInputs<T>& in) {
    at_ = chunk * kC;
    const int64_t n = a_.tokens - at_ < kC ? a_.tokens - at_ : kC;
    kept_->of(n, in.keep == nullptr ? nullptr : in.keep + at_);
    return n;
  }

  // A, M, what the state does not say yet (miss = V - before K S), and U.
  void solve(int64_t n, const DeltaInputs<T>& in, const T* S, bool earlier) {
    const T *kc = in.k + at_ * d_, *vc = in.v + at_ * e_, *b = in.write + at_;
    turn(n, d_, kc, d_, kt_, kC);
    lower_products(n, d_, kc, d_, kt_, A_);
    for (int64_t i = 0; i < n; ++i) {
      const T *A = A_ + i * kC, *G = kept_->G + i * kC;
      T* M = M_ + i * kC;
      if (kept_->all)
        for (int64_t j = 0; j < i; ++j) M[j] = -b[i] * A[j];
      else
        for (int64_t j = 0; j < i; ++j) M[j] = -b[i] * G[j] * A[j];
      for (int64_t j = i; j < n; ++j) M[j] = 0;
    }
    if (earlier) gemm<T>(n, e_, d_, {kt_, 1, kC}, S, e_, miss_, e_);
    for (int64_t i = 0; i < n; ++i) {
      const T before = !earlier ? T(0) : kept_->all ? T(1) : kept_->before[i];
      T *miss = miss_ + i * e_, *u = u_ + i * e_;
      for (int64_t x = 0; x < e_; ++x) {
        miss[x] = earlier ? vc[i * e_ + x] - before * miss[x] : vc[i * e_ + x];
        u[x] = b[i] * miss[x];
      }
    }
    for (int64_t r = 0; r < n; r += kRows) {  // M holds -M
      const int64_t rows = n - r < kRows ? n - r : kRows;
      if (r > 0) gemm<T>(rows, e_, r, {M_ + r * kC, kC, 1}, u_, e_, u_ + r * e_, e_, true);
      for (int64_t i = r + 1; i < r + rows; ++i)
        gemm<T>(1, e_, i - r, {M_ + i * kC + r, kC, 1}, u_ + r * e_, e_, u_ + i * e_, e_, true);
    }
  }

  // x becomes (1 + M)^-T x.
  void solve_turned(int64_t n, T* x) {
    for (int64_t r = (n - 1) / kRows * kRows; r >= 0; r -= kRows) {
      const int64_t rows = n - r < kRows ? n - r : kRows, end = r + rows;
      if (end < n)
        gemm<T>(rows, e_, n - end, {M_ + end * kC + r, 1, kC}, x + end * e_, e_, x + r * e_, e_, true);
      for (int64_t i = end - 2; i >= r; --i)
        gemm<T>(1, e_, end - 1 - i, {M_ + (i + 1) * kC + i, 1, kC}, x + (i + 1) * e_, e_, x + i * e_, e_,
                true);
    }
  }

  // x times G on and below the diagonal, zero above.
  void keep_lower(int64_t n, T* x) const {
    for (int64_t i = 0; i < n; ++i) {
      if (!kept_->all)
        for (int64_t j = 0; j <= i; ++j) x[i * kC + j] *= kept_->G[i * kC + j];
      for (int64_t j = i + 1; j < n; ++j) x[i * kC + j] = 0;
    }
  }

  // to[i] += x_i . y_i for the first n tokens, both by channel.
  void add_dots(int64_t n, const T* x, const T* y, T* to) const {
    for (int64_t r = 0; r < d_; ++r)
      for (int64_t i = 0; i < n; ++i) to[i] += x[r * kC + i] * y[r * kC + i];
  }

  void add(int64_t n, const T* x, T* to, T factor) const {
    for (int64_t r = 0; r < d_; ++r)
      for (int64_t i = 0; i < n; ++i) to[r * kC + i] += factor * x[r * kC + i];
  }

  // Row i of G is keep_i times row i - 1, and so is `before`: from the last row up. dG is used up.
  void through_kept(int64_t n, const T* keep, const T* dbefore, T* dkeep) {
    T state = 0;
    for (int64_t i = n - 1; i >= 0; --i) {
      state += dbefore[i];
      T sum = state * (i > 0 ? kept_->before[i - 1] : T(1));
      state *= keep[i];
      if (i > 0) {
        T *dG = dG_ + i * kC, *above = dG - kC;
        const T* G = kept_->G + (i - 1) * kC;
        for (int64_t j = 0; j < i; ++j) sum += dG[j] * G[j];
        for (int64_t j = 0; j + 1 < i; ++j) above[j] += keep[i] * dG[j];
      }
      dkeep[i] = sum;
    }
  }

  const DeltaAttention& a_;
  int64_t d_, e_, at_ = 0;
  Kept<T>* kept_;
  T *qt_, *kt_, *raw_, *dkt_, *turned_;  // by channel; the last is room to turn in
  T *miss_, *u_, *du_;                   // [kC, e]
  T *et_, *ut_;                          // by channel
  T *A_, *M_, *P_, *dP_, *dM_, *dG_;     // [kC, kC]; M holds -M
  T* state_;                             // [d, e], or its gradient
};

}  // namespace

void delta_forward(const DeltaAttention& a, const DeltaInputs<float>& in, float* out, float* states) {
  DeltaRule<float>(a).forward(in, out, states);
}
void delta_forward(const DeltaAttention& a, const DeltaInputs<double>& in, double* out, double* states) {
  DeltaRule<double>(a).forward(in, out, states);
}
void delta_backward(const DeltaAttention& a, const DeltaInputs<float>& in, const float* states,
                    const float* dout, const DeltaGradients<float>& d) {
  DeltaRule<float>(a).backward(in, states, dout, d);
}
void delta_backward(const DeltaAttention& a, const DeltaInputs<double>& in, const double* states,
                    const double* dout, const DeltaGradients<double>& d) {
  DeltaRule<double>(a).backward(in, states, dout, d);
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
