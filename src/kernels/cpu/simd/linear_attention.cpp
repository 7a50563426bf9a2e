// Linear attention chunk by chunk. With Phi the monomials of queries and keys, S the state before a chunk and
// D what is kept from each token to the chunk's end,
//   out = tril(G f(Q K^T)) V + diag(before) Phi(Q) S,   S <- kept S + Phi(K)^T diag(D) V.
// On the way back dQ needs S and goes forward with it; dK and dV need dS alone and go backward with that.
#include "kernels/cpu/simd/chunk.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/scratch.h"

namespace rankscope::simd::RANKSCOPE_SIMD {
namespace {

template <class T>
class Running {
 public:
  explicit Running(const LinearAttention& a)
      : a_(a), d_(a.width_qk), e_(a.width_v), m_(state_rows(a)), polynomial_(a.degree > 0) {
    Room<T> room;
    const auto lay_out = [&](Room<T> r) {
      kept_ = reinterpret_cast<Kept<T>*>(r.take(sizeof(Kept<T>) / sizeof(T)));
      qt_ = r.take(d_ * kC), kt_ = r.take(d_ * kC), vt_ = r.take(e_ * kC), dxt_ = r.take(d_ * kC);
      phi_q_ = polynomial_ ? r.take(m_ * kC) : qt_;
      phi_k_ = polynomial_ ? r.take(m_ * kC) : kt_;
      dphi_ = r.take(m_ * kC);
      turned_ = r.take(d_ * kC);
      s_ = r.take(kC * kC), ds_ = r.take(kC * kC);
      state_ = r.take(m_ * e_);
      return r.taken();
    };
    room = Room<T>(scratch(lay_out(room)));
    lay_out(room);
  }

  void forward(const T* q, const T* k, const T* v, const T* keep, T* out) {
    const int64_t chunks = running_chunks(a_.tokens);
    for (int64_t c = 0; c < chunks; ++c) {
      const int64_t n = begin(c, keep);
      const T *qc = q + at_ * d_, *kc = k + at_ * d_, *vc = v + at_ * e_;
      T* oc = out + at_ * e_;
      turn(n, d_, kc, d_, kt_, kC);
      lower_products(n, d_, qc, d_, kt_, s_);
      weigh(n);
      times_lower(n, e_, s_, vc, e_, oc, e_, false);
      if (c > 0) {
        queries(n, qc);
        gemm<T>(n, e_, m_, {phi_q_, 1, kC}, state_, e_, oc, e_, true);
      }
      if (c + 1 < chunks) grow(n, vc, c > 0);
    }
  }

  void backward(const T* q, const T* k, const T* v, const T* keep, const T* dout, T* dq, T* dk, T* dv) {
    const int64_t chunks = running_chunks(a_.tokens);
    for (int64_t c = 0; c < chunks; ++c) {  // what the state gives to queries
      const int64_t n = begin(c, keep);
      const T* kc = k + at_ * d_;
      if (c > 0) {
        turn(n, e_, dout + at_ * e_, e_, vt_, kC);
        if (!kept_->all) scale_lanes(e_, n, kept_->before, vt_);
        gemm<T>(m_, n, e_, {state_, e_, 1}, vt_, kC, dphi_, kC);
        turn(n, d_, q + at_ * d_, d_, qt_, kC);
        monomials(n, qt_, phi_q_);
        turn(d_, n, through_monomials(n, qt_, phi_q_), kC, dq + at_ * d_, d_);
      }
      if (c + 1 == chunks) break;
      turn(n, d_, kc, d_, kt_, kC);
      grow(n, v + at_ * e_, c > 0);
    }
    for (int64_t c = chunks - 1; c >= 0; --c) {  // pairs inside the chunk, and the state's gradient
      const int64_t n = begin(c, keep);
      const T *qc = q + at_ * d_, *kc = k + at_ * d_, *vc = v + at_ * e_, *doc = dout + at_ * e_;
      T *dqc = dq + at_ * d_, *dkc = dk + at_ * d_, *dvc = dv + at_ * e_;
      turn(n, d_, kc, d_, kt_, kC);
      turn(n, e_, vc, e_, vt_, kC);
      lower_products(n, d_, qc, d_, kt_, s_);
      lower_products(n, e_, doc, e_, vt_, ds_);
      weigh_back(n);
      times_lower(n, d_, ds_, kc, d_, dqc, d_, c > 0);
      times_lower_turned(n, d_, ds_, qc, d_, dkc, d_, false);
      times_lower_turned(n, e_, s_, doc, e_, dvc, e_, false);
      const bool later = c + 1 < chunks;
      if (later) {
        monomials(n, kt_, phi_k_);
        if (!kept_->all) scale_lanes(e_, n, kept_->to_end, vt_);
        gemm<T>(m_, n, e_, {state_, e_, 1}, vt_, kC, dphi_, kC);
        add_turned(n, d_, through_monomials(n, kt_, phi_k_), dkc, turned_);
        if (!kept_->all) scale_lanes(m_, n, kept_->to_end, phi_k_);
        gemm<T>(n, e_, m_, {phi_k_, 1, kC}, state_, e_, dvc, e_, true);
      }
      if (c > 0) {
        queries(n, qc);
        if (later && !kept_->all) scale_all(m_ * e_, kept_->before[n - 1], state_);
        gemm<T>(m_, e_, n, {phi_q_, kC, 1}, doc, e_, state_, e_, later);
      }
    }
  }

 private:
  int64_t begin(int64_t chunk, const T* keep) {
    at_ = chunk * kC;
    const int64_t n = a_.tokens - at_ < kC ? a_.tokens - at_ : kC;
    kept_->of(n, keep == nullptr ? nullptr : keep + at_);
    return n;
  }

  // The monomials of the queries, times what is kept of the state before them.
  void queries(int64_t n, const T* qc) {
    turn(n, d_, qc, d_, qt_, kC);
    monomials(n, qt_, phi_q_);
    if (!kept_->all) scale_lanes(m_, n, kept_->before, phi_q_);
  }

  // The state behind the chunk whose keys are in kt.
  void grow(int64_t n, const T* vc, bool there) {
    monomials(n, kt_, phi_k_);
    if (!kept_->all) {
      scale_lanes(m_, n, kept_->to_end, phi_k_);
      if (there) scale_all(m_ * e_, kept_->before[n - 1], state_);
    }
    gemm<T>(m_, e_, n, {phi_k_, kC, 1}, vc, e_, state_, e_, there);
  }

  // phi by channel of x by channel; for degree 0 they are one.
  void monomials(int64_t n, const T* x, T* phi) const {
    if (!polynomial_) return;
    for (int64_t f = 0; f < m_; ++f) {
      T* to = phi + f * kC;
      if (a_.monomials.channel[f] < 0) {
        for (int64_t i = 0; i < n; ++i) to[i] = 1;
        continue;
      }
      const T *from = phi + a_.monomials.parent[f] * kC, *by = x + a_.monomials.channel[f] * kC;
      const T factor = static_cast<T>(a_.monomials.factor[f]);
      for (int64_t i = 0; i < n; ++i) to[i] = factor * from[i] * by[i];
    }
  }

  // The gradient of x by channel from that of its monomials, dphi, which is used up.
  const T* through_monomials(int64_t n, const T* x, const T* phi) {
    if (!polynomial_) return dphi_;
    for (int64_t i = 0; i < d_ * kC; ++i) dxt_[i] = 0;
    for (int64_t f = m_ - 1; f >= 0; --f) {
      const int64_t c = a_.monomials.channel[f], p = a_.monomials.parent[f];
      if (c < 0) continue;
      const T factor = static_cast<T>(a_.monomials.factor[f]);
      const T *d = dphi_ + f * kC, *from = phi + p * kC, *by = x + c * kC;
      T *to = dxt_ + c * kC, *up = dphi_ + p * kC;
      for (int64_t i = 0; i < n; ++i) {
        const T g = factor * d[i];
        to[i] += g * from[i];
        up[i] += g * by[i];
      }
    }
    return dxt_;
  }

  // s becomes G f(s), zero above the diagonal.
  void weigh(int64_t n) {
    switch (a_.degree) {
      case 0:
        return weigh_by<0>(n, false);
      case 1:
        return weigh_by<1>(n, false);
      case 2:
        return weigh_by<2>(n, false);
      default:
        return weigh_by<3>(n, false);
    }
  }
  // ... and ds, the gradient of that, becomes the gradient of s.
  void weigh_back(int64_t n) {
    switch (a_.degree) {
      case 0:
        return weigh_by<0>(n, true);
      case 1:
        return weigh_by<1>(n, true);
      case 2:
        return weigh_by<2>(n, true);
      default:
        return weigh_by<3>(n, true);
    }
  }

  template <int P>
  static T value(T s) {
    if constexpr (P == 0) return s;
    if constexpr (P == 1) return 1 + s;
    if constexpr (P == 2) return 1 + s * (1 + s * T(0.5));
    return 1 + s * (1 + s * (T(0.5) + s * T(1.0 / 6)));
  }
  template <int P>
  static T slope(T s) {
    if constexpr (P <= 1) return 1;
    return value<(P > 1 ? P - 1 : 1)>(s);
  }

  template <int P>
  void weigh_by(int64_t n, bool back) {
    for (int64_t i = 0; i < n; ++i) {
      T *s = s_ + i * kC, *ds = ds_ + i * kC;
      const T* G = kept_->G + i * kC;
      if (back) {
        if (kept_->all)
          for (int64_t j = 0; j <= i; ++j) ds[j] *= slope<P>(s[j]);
        else
          for (int64_t j = 0; j <= i; ++j) ds[j] *= G[j] * slope<P>(s[j]);
        for (int64_t j = i + 1; j < n; ++j) ds[j] = 0;
      }
      if (kept_->all)
        for (int64_t j = 0; j <= i; ++j) s[j] = value<P>(s[j]);
      else
        for (int64_t j = 0; j <= i; ++j) s[j] = G[j] * value<P>(s[j]);
      for (int64_t j = i + 1; j < n; ++j) s[j] = 0;
    }
  }

  const LinearAttention& a_;
  int64_t d_, e_, m_, at_ = 0;
  bool polynomial_;
  Kept<T>* kept_;
  T *qt_, *kt_, *vt_, *dxt_;   // by channel
  T *phi_q_, *phi_k_, *dphi_;  // [m, kC]
  T *turned_, *s_, *ds_;       // scores [kC, kC] and their gradient
  T* state_;                   // [m, e], or its gradient
};

}  // namespace

void linear_forward(const LinearAttention& a, const float* q, const float* k, const float* v,
                    const float* keep, float* out) {
  Running<float>(a).forward(q, k, v, keep, out);
}
void linear_forward(const LinearAttention& a, const double* q, const double* k, const double* v,
                    const double* keep, double* out) {
  Running<double>(a).forward(q, k, v, keep, out);
}
void linear_backward(const LinearAttention& a, const float* q, const float* k, const float* v,
                     const float* keep, const float* dout, float* dq, float* dk, float* dv) {
  Running<float>(a).backward(q, k, v, keep, dout, dq, dk, dv);
}
void linear_backward(const LinearAttention& a, const double* q, const double* k, const double* v,
                     const double* keep, const double* dout, double* dq, double* dk, double* dv) {
  Running<double>(a).backward(q, k, v, keep, dout, dq, dk, dv);
}

}  // namespace rankscope::simd::RANKSCOPE_SIMD
