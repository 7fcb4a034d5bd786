#pragma once

// HIP's small vectors: float4 and its like, made by make_float4(x, y, z, w).

#define GRETA_HOST_VECTORS(name, type, bytes)                     \
  struct alignas(2 * bytes) name##2 {                             \
    type x, y;                                                    \
  };                                                              \
  struct name##3 {                                                \
    type x, y, z;                                                 \
  };                                                              \
  struct alignas(4 * bytes > 16 ? 16 : 4 * bytes) name##4 {       \
    type x, y, z, w;                                              \
  };                                                              \
  inline name##2 make_##name##2(type x, type y) {                 \
    return {x, y};                                                \
  }                                                               \
  inline name##3 make_##name##3(type x, type y, type z) {         \
    return {x, y, z};                                             \
  }                                                               \
  inline name##4 make_##name##4(type x, type y, type z, type w) { \
    return {x, y, z, w};                                          \
  }
GRETA_HOST_VECTORS(char, signed char, 1)
GRETA_HOST_VECTORS(uchar, unsigned char, 1)
GRETA_HOST_VECTORS(short, short, 2)
GRETA_HOST_VECTORS(ushort, unsigned short, 2)
GRETA_HOST_VECTORS(int, int, 4)
GRETA_HOST_VECTORS(uint, unsigned, 4)
GRETA_HOST_VECTORS(longlong, long long, 8)
GRETA_HOST_VECTORS(ulonglong, unsigned long long, 8)
GRETA_HOST_VECTORS(float, float, 4)
GRETA_HOST_VECTORS(double, double, 8)
#undef GRETA_HOST_VECTORS
