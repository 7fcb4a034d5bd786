#pragma once

#include <cstdint>

#include "kernels/model/weight_formats.hpp"
#include "runtime/device/dtype.hpp"

namespace greta::kernels {

/// Returns what rounded weights may add to the error of products of this length, relative to the
/// root of the sum of the squared products. Each rounding changes a weight by v, the unit roundoff
/// of A's type, at most. Kernels round a weight once, scales that the type does not have before
/// that, and of q4_k both terms, which together are up to three times as large as the weight. A sum
/// of K such errors is at most sqrt(K) v times the root (Cauchy-Schwarz); errors of mean zero stay
/// below 8 v (GemmErrorModel). Below the normal numbers of f16 nothing is rounded: scales of f16
/// times integers are multiples of its least number. Of mxfp4, which kernels round only to a type
/// that has its numbers below 2^128, it is 0.
double rounding_of_weights(WeightFormat format, DType a, std::int64_t length);

}  // namespace greta::kernels
