#pragma once

// Functions of one number: the C library's under their own names, and HIP's beside them. The fast
// ones of HIP (__expf …) are as exact as the others.

#include "runtime/device/hip/host/language/float_formats.hpp"

extern "C" {
#define GRETA_HOST_UNARY(name)   \
  float name##f(float) noexcept; \
  double name(double) noexcept
#define GRETA_HOST_BINARY(name)         \
  float name##f(float, float) noexcept; \
  double name(double, double) noexcept
GRETA_HOST_UNARY(acos);
GRETA_HOST_UNARY(acosh);
GRETA_HOST_UNARY(asin);
GRETA_HOST_UNARY(asinh);
GRETA_HOST_UNARY(atan);
GRETA_HOST_UNARY(atanh);
GRETA_HOST_UNARY(cbrt);
GRETA_HOST_UNARY(ceil);
GRETA_HOST_UNARY(cos);
GRETA_HOST_UNARY(cosh);
GRETA_HOST_UNARY(erf);
GRETA_HOST_UNARY(erfc);
GRETA_HOST_UNARY(exp);
GRETA_HOST_UNARY(exp2);
GRETA_HOST_UNARY(expm1);
GRETA_HOST_UNARY(fabs);
GRETA_HOST_UNARY(floor);
GRETA_HOST_UNARY(lgamma);
GRETA_HOST_UNARY(log);
GRETA_HOST_UNARY(log10);
GRETA_HOST_UNARY(log1p);
GRETA_HOST_UNARY(log2);
GRETA_HOST_UNARY(nearbyint);
GRETA_HOST_UNARY(rint);
GRETA_HOST_UNARY(round);
GRETA_HOST_UNARY(sin);
GRETA_HOST_UNARY(sinh);
GRETA_HOST_UNARY(sqrt);
GRETA_HOST_UNARY(tan);
GRETA_HOST_UNARY(tanh);
GRETA_HOST_UNARY(tgamma);
GRETA_HOST_UNARY(trunc);
GRETA_HOST_BINARY(atan2);
GRETA_HOST_BINARY(copysign);
GRETA_HOST_BINARY(fdim);
GRETA_HOST_BINARY(fmax);
GRETA_HOST_BINARY(fmin);
GRETA_HOST_BINARY(fmod);
GRETA_HOST_BINARY(hypot);
GRETA_HOST_BINARY(nextafter);
GRETA_HOST_BINARY(pow);
GRETA_HOST_BINARY(remainder);
#undef GRETA_HOST_UNARY
#undef GRETA_HOST_BINARY
float fmaf(float, float, float) noexcept;
double fma(double, double, double) noexcept;
float ldexpf(float, int) noexcept;
double ldexp(double, int) noexcept;
int abs(int) noexcept;
}

inline float rsqrtf(float x) {
  return 1 / sqrtf(x);
}
inline double rsqrt(double x) {
  return 1 / sqrt(x);
}
inline float exp10f(float x) {
  return powf(10, x);
}
inline float __expf(float x) {
  return expf(x);
}
inline float __exp10f(float x) {
  return exp10f(x);
}
inline float __logf(float x) {
  return logf(x);
}
inline float __log2f(float x) {
  return log2f(x);
}
inline float __log10f(float x) {
  return log10f(x);
}
inline float __powf(float x, float y) {
  return powf(x, y);
}
inline float __sinf(float x) {
  return sinf(x);
}
inline float __cosf(float x) {
  return cosf(x);
}
inline float __tanf(float x) {
  return tanf(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __frcp_rn(float x) {
  return 1 / x;
}
inline float __fsqrt_rn(float x) {
  return sqrtf(x);
}
inline float __fmaf_rn(float x, float y, float z) {
  return fmaf(x, y, z);
}
inline float __saturatef(float x) {
  return x > 0 ? (x < 1 ? x : 1) : 0;
}

inline float __uint_as_float(unsigned bits) {
  return greta_host::float_of_bits(bits);
}
inline float __int_as_float(int bits) {
  return greta_host::float_of_bits(unsigned(bits));
}
inline unsigned __float_as_uint(float value) {
  return greta_host::bits_of_float(value);
}
inline int __float_as_int(float value) {
  return int(greta_host::bits_of_float(value));
}

inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(unsigned(x));
}
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1) << (31 - i);
  return reversed;
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return unsigned(static_cast<unsigned long long>(x) * y >> 32);
}
inline int __mulhi(int x, int y) {
  return int(static_cast<long long>(x) * y >> 32);
}

#define GRETA_HOST_MIN_MAX(type)       \
  constexpr type min(type a, type b) { \
    return b < a ? b : a;              \
  }                                    \
  constexpr type max(type a, type b) { \
    return a < b ? b : a;              \
  }
GRETA_HOST_MIN_MAX(int)
GRETA_HOST_MIN_MAX(unsigned)
GRETA_HOST_MIN_MAX(long)
GRETA_HOST_MIN_MAX(unsigned long)
GRETA_HOST_MIN_MAX(long long)
GRETA_HOST_MIN_MAX(unsigned long long)
#undef GRETA_HOST_MIN_MAX
inline float min(float a, float b) {
  return fminf(a, b);
}
inline float max(float a, float b) {
  return fmaxf(a, b);
}
inline double min(double a, double b) {
  return fmin(a, b);
}
inline double max(double a, double b) {
  return fmax(a, b);
}

template <typename T>
T __ldg(const T* at) {
  return *at;
}
