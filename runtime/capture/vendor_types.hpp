#pragma once

#include <cstdint>

#include "runtime/capture/call.hpp"

/// Translates the vendors' numbers to cuBLAS's, which this library uses (Call).
namespace greta::capture {

/// Element types as in cudaDataType_t and hipDataType; others are numbers without a name here.
enum Type : std::int16_t {
  no_type = -1,
  r_32f = 0,
  r_64f = 1,
  r_16f = 2,
  r_8i = 3,
  c_32f = 4,
  c_64f = 5,
  c_16f = 6,
  r_32i = 10,
  r_16bf = 14,
};

/// Types in which products are summed, as in cublasComputeType_t.
enum Compute : std::int16_t {
  no_compute = -1,
  compute_16f = 64,
  compute_32f = 68,
  compute_64f = 70,
  compute_32i = 72,
};

/// Returns 'N', 'T' or 'C' of any library's operation, else '?'.
char op_of(int operation);

/// Returns the type of any library: hipBLAS's and rocBLAS's own types have numbers from 150 on.
std::int16_t type_of(int type);
/// Returns the compute type that cuBLAS means, which was a data type before CUDA 11.
std::int16_t cublas_compute(int type);
/// Returns the compute type that hipBLAS means: hipblasComputeType_t, or hipblasDatatype_t in
/// functions of its first version.
std::int16_t hipblas_compute(int type);
/// Returns the compute type that rocBLAS means, a rocblas_datatype.
std::int16_t rocblas_compute(int type);

/// Returns the type of alpha and beta in products of this kind.
std::int16_t scale_of(std::int16_t compute, std::int16_t result);

/// Reads a factor. `mode`: 0 if it is in host memory.
Factor read_factor(const void* factor, std::int16_t type, int mode, FactorValue& value);

/// Returns "f32", "bf16" …; nullptr if the number has no name here.
const char* type_name(std::int16_t type);
/// Returns "f32", "f32_fast_tf32", "f16_pedantic" …; nullptr if the number has no name here.
const char* compute_name(std::int16_t compute);
/// Returns "none", "bias", "gelu_bias" …; nullptr if the number has no name here.
const char* epilogue_name(std::int32_t epilogue);

}  // namespace greta::capture
