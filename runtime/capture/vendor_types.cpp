#include "runtime/capture/vendor_types.hpp"

#include <cstddef>
#include <cstring>

namespace greta::capture {
namespace {

struct Named {
  int number;
  const char* name;
};

constexpr Named types[] = {
    {r_32f, "f32"},
    {r_64f, "f64"},
    {r_16f, "f16"},
    {r_8i, "i8"},
    {c_32f, "f32_c"},
    {c_64f, "f64_c"},
    {c_16f, "f16_c"},
    {7, "i8_c"},
    {8, "u8"},
    {9, "u8_c"},
    {r_32i, "i32"},
    {11, "i32_c"},
    {12, "u32"},
    {13, "u32_c"},
    {r_16bf, "bf16"},
    {15, "bf16_c"},
    {16, "i4"},
    {18, "u4"},
    {28, "f8_e4m3"},
    {29, "f8_e5m2"},
    {30, "f8_ue8m0"},
    {31, "f6_e2m3"},
    {32, "f6_e3m2"},
    {33, "f4_e2m1"},
    {1000, "f8_e4m3_fnuz"},
    {1001, "f8_e5m2_fnuz"},
};

constexpr Named computes[] = {
    {64, "f16"},
    {65, "f16_pedantic"},
    {68, "f32"},
    {69, "f32_pedantic"},
    {70, "f64"},
    {71, "f64_pedantic"},
    {72, "i32"},
    {73, "i32_pedantic"},
    {74, "f32_fast_f16"},
    {75, "f32_fast_bf16"},
    {77, "f32_fast_tf32"},
    {78, "f32_emulated_bf16x9"},
    {79, "f64_emulated_fixed_point"},
};

constexpr Named epilogues[] = {
    {1, "none"},      {2, "relu"},           {4, "bias"},       {6, "relu_bias"},
    {32, "gelu"},     {36, "gelu_bias"},     {130, "relu_aux"}, {134, "relu_aux_bias"},
    {136, "drelu"},   {152, "drelu_bgrad"},  {160, "gelu_aux"}, {164, "gelu_aux_bias"},
    {192, "dgelu"},   {208, "dgelu_bgrad"},  {256, "bgrada"},   {512, "bgradb"},
    {65536, "swish"}, {65540, "swish_bias"},
};

template <std::size_t count>
const char* name_of(const Named (&list)[count], int number) {
  for (const Named& each : list) {
    if (each.number == number) return each.name;
  }
  return nullptr;
}

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double size = exponent == 0 ? mantissa * 0x1p-24 : (1024 + mantissa) * 0x1p-25;
  for (int i = 0; i < exponent && exponent < 31; ++i) size *= 2;
  if (exponent == 31) size = mantissa == 0 ? __builtin_inf() : __builtin_nan("");
  return (bits & 0x8000) != 0 ? -size : size;
}

double float_value(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<double>(value);
}

template <typename T>
T element(const void* memory, int index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(memory) + sizeof(T) * static_cast<unsigned>(index),
              sizeof value);
  return value;
}

double part(const void* memory, std::int16_t type, int index) {
  switch (type) {
    case r_16f:
    case c_16f:
      return half_value(element<std::uint16_t>(memory, index));
    case r_16bf:
      return float_value(std::uint32_t{element<std::uint16_t>(memory, index)} << 16);
    case r_64f:
    case c_64f:
      return element<double>(memory, index);
    case r_32i:
      return element<std::int32_t>(memory, index);
    default:
      return static_cast<double>(element<float>(memory, index));
  }
}

}  // namespace

char op_of(int operation) {
  switch (operation) {
    case 0:
    case 111:
      return 'N';
    case 1:
    case 112:
      return 'T';
    case 2:
    case 113:
      return 'C';
    default:
      return '?';
  }
}

std::int16_t type_of(int type) {
  switch (type) {
    case 150:
      return r_16f;
    case 151:
      return r_32f;
    case 152:
      return r_64f;
    case 153:
      return c_16f;
    case 154:
      return c_32f;
    case 155:
      return c_64f;
    case 160:
      return r_8i;
    case 161:
      return 8;
    case 162:
      return r_32i;
    case 163:
      return 12;
    case 164:
      return 7;
    case 165:
      return 9;
    case 166:
      return 11;
    case 167:
      return 13;
    case 168:
      return r_16bf;
    case 169:
      return 15;
    default:
      return static_cast<std::int16_t>(type < -1 || type > 32767 ? 32767 : type);
  }
}

std::int16_t cublas_compute(int type) {
  if (type >= 64 && type < 150) return static_cast<std::int16_t>(type);
  switch (type_of(type)) {
    case r_16f:
      return compute_16f;
    case r_32f:
    case c_32f:
      return compute_32f;
    case r_64f:
    case c_64f:
      return compute_64f;
    case r_32i:
      return compute_32i;
    default:
      return no_compute;
  }
}

std::int16_t hipblas_compute(int type) {
  constexpr std::int16_t as_cublas[] = {64, 65, 68, 69, 74, 75, 77, 70, 71, 72, 73};
  if (type >= 0 && type <= 10) return as_cublas[type];
  return type >= 150 ? cublas_compute(type) : std::int16_t{no_compute};
}

std::int16_t rocblas_compute(int type) {
  return type >= 150 ? cublas_compute(type) : std::int16_t{no_compute};
}

std::int16_t scale_of(std::int16_t compute, std::int16_t result) {
  const bool complex = result == c_16f || result == c_32f || result == c_64f;
  switch (compute) {
    case 64:
    case 65:
      return complex ? c_16f : r_16f;
    case 70:
    case 71:
    case 79:
      return complex ? c_64f : r_64f;
    case 72:
    case 73:
      return r_32i;
    default:
      return complex ? c_32f : r_32f;
  }
}

Factor read_factor(const void* factor, std::int16_t type, int mode, FactorValue& value) {
  if (factor == nullptr) return Factor::missing;
  if (mode != 0) return mode == 1 ? Factor::device : Factor::vector;
  const bool complex = type == c_16f || type == c_32f || type == c_64f;
  value.real = part(factor, type, 0);
  value.imaginary = complex ? part(factor, type, 1) : 0;
  if (value.imaginary == 0 && value.real == 0) return Factor::zero;
  if (value.imaginary == 0 && value.real == 1) return Factor::one;
  return Factor::other;
}

const char* type_name(std::int16_t type) {
  return name_of(types, type);
}
const char* compute_name(std::int16_t compute) {
  return name_of(computes, compute);
}
const char* epilogue_name(std::int32_t epilogue) {
  return name_of(epilogues, epilogue);
}

}  // namespace greta::capture
