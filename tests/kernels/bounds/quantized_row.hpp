#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/model/weight_formats.hpp"
#include "tests/kernels/bounds/emulation.hpp"
#include "tests/layers.hpp"

/// Quantised weights, decoded in the arithmetic of emulations.
namespace greta::test::bounds {

/// A quantised matrix among the inputs, whose bytes are given as numbers.
struct QuantizedInput {
  const char *integers, *scales;  ///< names of tensors
  std::size_t rows, k;
  const char* zeros = "zeros";
  const char* format = nullptr;  ///< nullptr: that of the problem's attribute
};

/// Decodes the weights of a row.
class QuantizedRow {
 public:
  QuantizedRow(const Given& given, QuantizedInput matrix, std::size_t row)
      : format_(kernels::weight_format_from_string(matrix.format != nullptr
                                                       ? matrix.format
                                                       : given.problem.attribute("weights", "int4"))
                    .value()),
        group_(format_ == Format::mxfp4 ? 32 : std::stoul(given.problem.attribute("group", "128"))),
        bytes_(given[matrix.integers].data() + row * (given[matrix.integers].size() / matrix.rows)),
        scales_(given.elements(matrix.scales)),
        zeros_(given.elements(matrix.zeros)),
        first_group_(row * (matrix.k / group_)) {}

  /// Weights that share a scale.
  std::size_t segment() const { return format_ == Format::q6_k ? 16 : 32; }
  /// Returns a weight without its scale, or with q4_k as it is.
  Float at(std::size_t i) const {
    if (format_ == Format::int4) return number(half(i / 2, i % 2 == 1)) - zero(i, 8);
    if (format_ == Format::mxfp4) {
      return static_cast<float>(kernels::e2m1_value(half(i / 2, i % 2 == 1)));
    }
    if (format_ == Format::int8) {
      const int q = byte(i);
      return zeros_ != nullptr ? number(q) - zero(i, 0) : number(q < 128 ? q : q - 256);
    }
    if (format_ == Format::q4_0) return number(half(i / 32 * 18 + 2 + i % 16, i % 32 >= 16) - 8);
    if (format_ == Format::q8_0) return number(signed_byte(i / 32 * 34 + 2 + i % 32));
    const std::size_t in = i % 256;
    if (format_ == Format::q4_k) {
      const std::size_t block = i / 256 * 144;
      const int q = half(block + 16 + in / 64 * 32 + in % 32, in / 32 % 2 == 1);
      // All scales and minima of a block are equal here: six bits in four bytes each.
      return multiply_add(Float(f16(block)) * number(byte(block + 4) & 63), number(q),
                          Float(0) - Float(f16(block + 2)) * number(byte(block + 8) & 63));
    }
    const std::size_t block = i / 256 * 210, quarter = in % 128 / 32;
    const int low = half(block + in / 128 * 64 + quarter % 2 * 32 + in % 32, quarter >= 2);
    const int high = byte(block + 128 + in / 128 * 32 + in % 32) >> 2 * quarter & 3;
    return number((low | high << 4) - 32);
  }
  Float scale(std::size_t i) const {
    if (format_ == Format::q4_k) return 1;
    if (format_ == Format::q4_0) return f16(i / 32 * 18);
    if (format_ == Format::q8_0) return f16(i / 32 * 34);
    if (format_ == Format::q6_k) {
      const std::size_t block = i / 256 * 210;
      return Float(f16(block + 208)) * number(signed_byte(block + 192 + i % 256 / 16));
    }
    const float scale = scales_[group(i)];
    return format_ == Format::mxfp4 ? std::exp2(scale - 127) : scale;
  }

 private:
  using Format = kernels::WeightFormat;

  static Float number(int value) { return static_cast<float>(value); }
  int byte(std::size_t at) const { return static_cast<int>(bytes_[at]); }
  int signed_byte(std::size_t at) const { return static_cast<std::int8_t>(byte(at)); }
  int half(std::size_t at, bool upper) const { return upper ? byte(at) / 16 : byte(at) % 16; }
  float f16(std::size_t at) const {
    const std::byte raw[2] = {static_cast<std::byte>(byte(at)),
                              static_cast<std::byte>(byte(at + 1))};
    return static_cast<float>(load_element(DType::f16, raw, 0));
  }
  std::size_t group(std::size_t i) const { return first_group_ + i / group_; }
  Float zero(std::size_t i, float otherwise) const {
    return zeros_ != nullptr ? zeros_[group(i)] : otherwise;
  }

  Format format_;
  std::size_t group_;  ///< weights that share a scale of their own operand
  const float *bytes_, *scales_, *zeros_;
  std::size_t first_group_;
};

/// Returns `panels` as the rows that they have in units of 16 elements each.
inline std::vector<float> rows_of_panels(const std::vector<float>& panels, std::size_t rows) {
  std::vector<float> list;
  const std::size_t width = panels.size() / rows;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const std::size_t row = i / width, at = i % width;
    list.push_back(panels[row / 16 * 16 * width + at / 16 * 256 + row % 16 * 16 + at % 16]);
  }
  return list;
}

/// Returns the inputs with matrices as rows, which are panels of this number of rows if the
/// problem says so.
inline Tensors in_rows(const Given& given, const std::map<std::string, std::size_t>& matrices) {
  Tensors tensors = given.tensors;
  if (given.problem.attribute("packing", "rows") != "panels") return tensors;
  for (const auto& [name, count] : matrices) {
    tensors[name] = rows_of_panels(given[name], count);
  }
  return tensors;
}

/// Returns bytes of blocks: random ones, but for an f16 of 2^-9 in the two bytes at `scale`.
inline Contents bytes_of_blocks(std::size_t bytes, std::size_t scale) {
  return [=](double draw, std::size_t i) {
    if (i % bytes == scale) return 0.0;
    if (i % bytes == scale + 1) return 24.0;
    return std::floor((draw + 0.5) * 256);
  };
}

/// Blocks of q4_k with the scale 2^-9, the minimum 7.5 times that, and factors of 33.
inline double byte_of_q4_k(double draw, std::size_t i) {
  const std::size_t at = i % 144;
  if (at < 4) return at == 1 ? 24 : at == 3 ? 35 : at == 2 ? 128 : 0;
  if (at < 12) return 0x80 | 33;  // and the upper two bits of the last four
  if (at < 16) return 0x11;
  return std::floor((draw + 0.5) * 256);
}

}  // namespace greta::test::bounds
