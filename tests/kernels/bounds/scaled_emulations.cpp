#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/model/byte_formats.hpp"
#include "tests/kernels/bounds/emulation.hpp"
#include "tests/layers.hpp"

/// Scaled products of numbers of eight bits.
namespace greta::test::bounds {
namespace {

/// Two numbers that are multiplied; `exponent` is the sum of their stored ones.
struct Pair {
  double product = 0;
  int exponent = 0;
};

/// Returns the exponent that a number is stored with, which is that of the least normal number for
/// numbers below it.
int stored_exponent(double number, int least) {
  return number == 0 ? least : std::max(std::ilogb(number), least);
}

/// Adds 32 products to a sum as matrix cores of sm_90 do: each term keeps 13 bits below the largest
/// exponent, and the rest is cut off, as it is of the sum. Products are not normalised: on an H200,
/// terms of -2^-9 x 64 and smaller ones lost what lies below 2^(-6 + 6 - 13).
double add_products(double sum, const Pair* pairs, std::size_t count, int bits) {
  int largest = sum == 0 ? std::numeric_limits<int>::min() : std::ilogb(sum);
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, pairs[i].exponent);
  const double unit = std::ldexp(1, largest - bits);
  double total = std::trunc(sum / unit);
  for (std::size_t i = 0; i < count; ++i) total += std::trunc(pairs[i].product / unit);
  total *= unit;
  if (total == 0) return 0;
  const double last = std::ldexp(1, std::ilogb(total) - bits);
  return std::trunc(total / last) * last;
}

Outputs scaled_gemm(const Given& given) {
  const std::size_t m = given.dim("m"), n = given.dim("n"), k = given.dim("k");
  const auto format =
      kernels::byte_format_from_string(given.problem.attribute("format", "e4m3")).value();
  const std::string shared = given.problem.attribute("scales", "tensor");
  const bool integers = format == kernels::ByteFormat::int8, blocks = shared == "block";
  const std::size_t across = (k + 127) / 128;
  const auto numbers = [&](const char* name) {
    std::vector<double> values;
    for (const float byte : given[name]) {
      values.push_back(kernels::decode_byte(format, static_cast<std::uint8_t>(byte)));
    }
    return values;
  };
  const std::vector<double> a = numbers("A"), b = numbers("B");
  // One scale of the operand, of each row, or of blocks of `rows` rows and 128 k.
  const auto scale = [&](const char* name, std::size_t row, std::size_t rows, std::size_t part) {
    const std::size_t at = blocks ? row / rows * across + part : shared == "row" ? row : 0;
    return Float(given[name][at]);
  };
  const int least = 1 - kernels::traits(format).bias;
  const int bits = 13 - arithmetic().dropped;
  std::vector<float> out;
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t col = 0; col < n; ++col) {
      const auto sum_of_part = [&](std::size_t part) {
        double sum = 0;
        Pair pairs[32];
        for (std::size_t i = part * 128; i < std::min(k, part * 128 + 128);) {
          std::size_t count = 0;
          for (; count < 32 && i < k; ++count, ++i) {
            const double of_a = a[row * k + i], of_b = b[col * k + i];
            pairs[count] = {of_a * of_b,
                            stored_exponent(of_a, least) + stored_exponent(of_b, least)};
          }
          if (integers) {
            for (std::size_t p = 0; p < count; ++p) sum += pairs[p].product;
          } else {
            sum = add_products(sum, pairs, count, bits);
          }
        }
        return sum;
      };
      if (blocks) {
        out.push_back(dot(
                          across,
                          [&](std::size_t p) { return Float(static_cast<float>(sum_of_part(p))); },
                          [&](std::size_t p) {
                            return scale("scales_a", row, 1, p) * scale("scales_b", col, 128, p);
                          })
                          .value());
        continue;
      }
      Float total;
      if (integers) {
        double exact = 0;
        for (std::size_t p = 0; p < across; ++p) exact += sum_of_part(p);
        total = Float(static_cast<float>(exact)) + Float();
      } else {
        total =
            sum(across, [&](std::size_t p) { return Float(static_cast<float>(sum_of_part(p))); });
      }
      const Float factor = scale("scales_a", row, 1, 0) * scale("scales_b", col, 1, 0);
      out.push_back((total * factor).value());
    }
  }
  return {out};
}

/// Returns bytes of random finite numbers.
Contents finite_bytes(kernels::ByteFormat format) {
  return [format](double draw, std::size_t) {
    const double largest = kernels::traits(format).largest;
    return static_cast<double>(kernels::encode_byte(format, 2 * draw * largest));
  };
}

/// A case of few numbers: the smallest ones of A, beside numbers of B of many sizes.
Case with_subnormal_numbers(Case of) {
  const auto byte = [](double number) {
    return static_cast<double>(kernels::encode_byte(kernels::ByteFormat::e4m3, number));
  };
  of.what = "e4m3 with subnormal numbers of A";
  of.options.back() = {"k", "16"};
  of.contents.at("A") = [byte](double draw, std::size_t) {
    return byte(draw > 0 ? 0x1p-9 : -0x1p-9);
  };
  of.contents.at("B") = [byte](double draw, std::size_t i) {
    return byte((i % 2 == 0 ? 1 : -1) * std::exp2(30 * std::abs(draw) - 7));
  };
  of.contents.at("scales_a") = times(0x1p5);
  return of;
}

std::vector<Case> scaled_gemm_cases(const DTypes&) {
  const auto with = [](const char* what, kernels::ByteFormat format, const char* scales,
                       const Factors& factors) {
    const Contents bytes = finite_bytes(format);
    // Results of f16 stay within its range.
    const double most = 1 / kernels::traits(format).largest;
    return Case{what,
                {{"format", std::string(kernels::to_string(format))},
                 {"scales", scales},
                 {"m", "140"},
                 {"n", "140"},
                 {"k", "400"}},
                {{"A", bytes}, {"B", bytes}, {"scales_a", times(most)}, {"scales_b", times(most)}},
                factors};
  };
  using kernels::ByteFormat;
  return {
      with("e4m3", ByteFormat::e4m3, "tensor", {4.7, 0, 0, 3.1, 2}),
      with_subnormal_numbers(with("", ByteFormat::e4m3, "tensor", {5.9, 0, 0, 5.8, 3.8})),
      with("e5m2 with scales of rows", ByteFormat::e5m2, "row", {8, 0, 0, 3.7, 2}),
      with("e4m3_fnuz with scales of blocks", ByteFormat::e4m3_fnuz, "block", {6, 0, 0, 3.4, 2}),
      with("e5m2_fnuz", ByteFormat::e5m2_fnuz, "tensor", {8, 0, 0, 3.8, 2}),
      with("int8 with scales of rows", ByteFormat::int8, "row", {48, 0, 0, 1.2, 1.2}),
      with("int8 with scales of blocks", ByteFormat::int8, "block", {30, 0, 0, 1.2, 1.2})};
}

}  // namespace

std::vector<Emulation> scaled_emulations() {
  return {{"scaled_gemm", scaled_gemm_cases, scaled_gemm}};
}

}  // namespace greta::test::bounds
