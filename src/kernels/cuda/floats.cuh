// Several floats at once: one wide load or store.
#pragma once

namespace rankscope::cuda {

template <int N>
struct Floats;
template <>
struct Floats<1> {
  using Type = float;
};
template <>
struct Floats<2> {
  using Type = float2;
};
template <>
struct Floats<4> {
  using Type = float4;
};

template <int N>
__device__ __forceinline__ void load_floats(const float* from, float* to) {
  using Type = typename Floats<N>::Type;
  *reinterpret_cast<Type*>(to) = *reinterpret_cast<const Type*>(from);
}

template <int N>
__device__ __forceinline__ void store_floats(float* to, const float* from) {
  using Type = typename Floats<N>::Type;
  *reinterpret_cast<Type*>(to) = *reinterpret_cast<const Type*>(from);
}

}  // namespace rankscope::cuda
