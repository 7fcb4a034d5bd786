#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/model/problem.hpp"

/// How AWQ and GPTQ store the weights of a product, how they become rows of integers, and panels of
/// rows.
namespace greta::kernels {

/// How a matrix of n rows of k weights is stored. Those of AWQ and GPTQ have three tensors:
///
/// - `qweight`, words of 8 integers of 4 bits, or 4 of 8 bits. awq (version gemm): [k, n / 8],
/// where
///   the nibbles of a word, from the lowest one on, are rows 0, 2, 4, 6, 1, 3, 5 and 7 of 8. gptq,
///   gptq_v2: [k / 8, n], or of 8 bits [k / 4, n], where they are consecutive k.
/// - `qzeros`, words [k / group, n / 8], or of 8 bits [k / group, n / 4]: zero points. awq: packed
///   as qweight. gptq and gptq_v2: rows in order; gptq stores one less than a zero point.
/// - `scales` [k / group, n].
///
/// A weight is scale (integer - zero point). Sources: AutoAWQ, WQLinear_GEMM; AutoGPTQ,
/// QuantLinear; GPTQModel for gptq_v2.
///
/// The others have integers as quantized_gemm reads them: rows of them, or panels of rows
/// (panel_place()), with rows of scales and zero points.
enum class WeightPacking : std::uint8_t { awq, gptq, gptq_v2, rows, panels };

inline constexpr std::array<std::string_view, 5> weight_packing_names{"awq", "gptq", "gptq_v2",
                                                                      "rows", "panels"};

/// Returns whether weights are words of AWQ or GPTQ.
constexpr bool in_words(WeightPacking packing) {
  return packing < WeightPacking::rows;
}

constexpr std::string_view to_string(WeightPacking packing) {
  return weight_packing_names[static_cast<std::size_t>(packing)];
}

constexpr std::optional<WeightPacking> weight_packing_from_string(std::string_view name) {
  for (std::size_t i = 0; i < weight_packing_names.size(); ++i) {
    if (weight_packing_names[i] == name) return static_cast<WeightPacking>(i);
  }
  return std::nullopt;
}

/// A matrix of AWQ or GPTQ, or of rows: the extents of its tensors, in words.
struct PackedMatrix {
  WeightPacking packing = WeightPacking::awq;
  std::int64_t bits = 4;
  std::int64_t n = 0, k = 0;
  std::int64_t group = 128;

  bool along_n() const { return packing == WeightPacking::awq; }
  /// Returns the weights of a word.
  std::int64_t of_word() const { return 32 / bits; }
  std::int64_t groups() const { return k / group; }
  bool in_rows() const { return packing == WeightPacking::rows; }
  std::int64_t weight_rows() const { return in_rows() ? n : along_n() ? k : k / of_word(); }
  std::int64_t weight_cols() const {
    return in_rows() ? k / of_word() : along_n() ? n / of_word() : n;
  }
  std::int64_t zero_cols() const { return n / of_word(); }
  /// Returns the bytes of a row of integers after repacking.
  std::int64_t row_bytes() const { return k * bits / 8; }
  /// Returns the zero point that formats without zero points imply.
  int implied_zero() const { return 1 << (bits - 1); }
};

/// Returns the matrix of a problem of repack_weights, or of quantized_gemm with packed weights.
PackedMatrix packed_matrix_of(const Problem& problem);

/// The multiple of which n is, for whole words of zero points and weights.
constexpr std::int64_t packed_rows = 8;

/// Writes the integers of words, or of rows, as n rows of k: of 4 bits the even one in the lower
/// half of a byte, of 8 bits unsigned. `qweight` needs no alignment. With `order`, weight i of a
/// row is the stored weight order[i], or 0 where there is none of that number. All cores take part.
void repack_integers(const PackedMatrix& matrix, const std::byte* qweight,
                     const std::int32_t* order, std::byte* to);

/// Makes unsigned integers of 8 bits, whose zero points are all 128, signed ones.
void make_signed(std::byte* integers, std::int64_t count);

/// Returns the zero point of a group of a row: 0 to 16, or of 8 bits 0 to 256. `qzeros` needs no
/// alignment.
int packed_zero_point(const PackedMatrix& matrix, const std::byte* qzeros, std::int64_t row,
                      std::int64_t group);

}  // namespace greta::kernels
