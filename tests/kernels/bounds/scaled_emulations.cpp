#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/weight_formats.hpp"
#include "tests/kernels/bounds/emulation.hpp"
#include "tests/kernels/bounds/grouped_rows.hpp"
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

/// Returns a number below 2^63 without its fraction.
double whole(double number) {
  return static_cast<double>(static_cast<std::int64_t>(number));
}

/// Adds 32 products to a sum as matrix cores of sm_90 do: each term keeps 13 bits below the largest
/// exponent, and the rest is cut off, as it is of the sum. Products are not normalised: on an H200,
/// terms of -2^-9 x 64 and smaller ones lost what lies below 2^(-6 + 6 - 13).
double add_products(double sum, const Pair* pairs, std::size_t count, int bits) {
  int largest = sum == 0 ? std::numeric_limits<int>::min() : std::ilogb(sum);
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, pairs[i].exponent);
  const double unit = std::ldexp(1, largest - bits), units = 1 / unit;  // powers of two: exact
  double total = whole(sum * units);
  for (std::size_t i = 0; i < count; ++i) total += whole(pairs[i].product * units);
  total *= unit;
  if (total == 0) return 0;
  const double last = std::ldexp(1, std::ilogb(total) - bits);
  return std::trunc(total / last) * last;
}

/// Sums of scaled products, of all lines of B or of those of a group.
class ScaledProducts {
 public:
  /// `lines`: those of B that a product has.
  ScaledProducts(const Given& given, std::size_t lines)
      : given_(given),
        lines_(lines),
        k_(given.dim("k")),
        shared_(given.problem.attribute("scales", "tensor")),
        mx_(shared_ == "mx"),
        part_(mx_ ? 32 : 128),
        across_((k_ + part_ - 1) / part_),
        format_(
            kernels::byte_format_from_string(given.problem.attribute("format", "e4m3")).value()),
        format_b_(kernels::byte_format_from_string(given.problem.attribute("format_b", "same"))
                      .value_or(format_)),
        integers_(format_ == kernels::ByteFormat::int8),
        a_(numbers("A", format_)),
        b_(numbers("B", format_b_)),
        exponents_of_a_(exponents(a_, format_)),
        exponents_of_b_(exponents(b_, format_b_)) {}

  /// Returns the product of a row of A with a line of a group's B.
  Float at(std::size_t row, std::size_t line, std::size_t group = 0) const {
    const auto sum_of = [&](std::size_t part) {
      return Float(static_cast<float>(sum_of_part(row, group * lines_ + line, part)));
    };
    const std::size_t of_a = shared_ == "tensor" ? group : row;
    const std::size_t of_b = shared_ == "tensor"  ? group
                             : shared_ == "block" ? group * ((lines_ + 127) / 128) + line / 128
                                                  : group * lines_ + line;
    if (shared_ == "block" || mx_) {
      return dot(across_, sum_of, [&](std::size_t part) {
        return scale("scales_a", of_a * across_ + part) * scale("scales_b", of_b * across_ + part);
      });
    }
    const Float factor = Float(given_["scales_a"][of_a]) * Float(given_["scales_b"][of_b]);
    if (!integers_) return sum(across_, sum_of) * factor;
    double exact = 0;
    for (std::size_t part = 0; part < across_; ++part) {
      exact += sum_of_part(row, group * lines_ + line, part);
    }
    return (Float(static_cast<float>(exact)) + Float()) * factor;
  }

 private:
  Float scale(const char* name, std::size_t index) const {
    const float stored = given_[name][index];
    return Float(mx_ ? static_cast<float>(kernels::e8m0_value(static_cast<int>(stored))) : stored);
  }

  std::vector<double> numbers(const char* name, kernels::ByteFormat format) const {
    std::vector<double> values;
    for (const float byte : given_[name]) {
      for (int bit = 0; bit < 8; bit += kernels::traits(format).bits) {
        const int code = static_cast<std::uint8_t>(byte) >> bit;
        values.push_back(kernels::decode_byte(format, static_cast<std::uint8_t>(code)));
      }
    }
    return values;
  }

  static std::vector<int> exponents(const std::vector<double>& numbers,
                                    kernels::ByteFormat format) {
    const int least = 1 - kernels::traits(format).bias;
    std::vector<int> values;
    for (const double number : numbers) values.push_back(stored_exponent(number, least));
    return values;
  }

  double sum_of_part(std::size_t row, std::size_t line, std::size_t part) const {
    const int bits = 13 - arithmetic().dropped;
    double sum = 0;
    Pair pairs[32];
    for (std::size_t i = part * part_; i < std::min(k_, part * part_ + part_);) {
      std::size_t count = 0;
      for (; count < 32 && i < k_; ++count, ++i) {
        const std::size_t of_a = row * k_ + i, of_b = line * k_ + i;
        pairs[count] = {a_[of_a] * b_[of_b], exponents_of_a_[of_a] + exponents_of_b_[of_b]};
      }
      if (integers_) {
        for (std::size_t p = 0; p < count; ++p) sum += pairs[p].product;
      } else {
        sum = add_products(sum, pairs, count, bits);
      }
    }
    return sum;
  }

  const Given& given_;
  std::size_t lines_, k_;
  std::string shared_;
  bool mx_;
  std::size_t part_, across_;  ///< k whose sums are added, and the number of these
  kernels::ByteFormat format_, format_b_;
  bool integers_;
  std::vector<double> a_, b_;
  std::vector<int> exponents_of_a_, exponents_of_b_;
};

Outputs scaled_gemm(const Given& given) {
  const std::size_t m = given.dim("m"), n = given.dim("n");
  const ScaledProducts products(given, n);
  std::vector<float> out;
  for (std::size_t i = 0; i < m * n; ++i) out.push_back(products.at(i / n, i % n).value());
  return {out};
}

/// Each group has some of the rows.
Outputs scaled_grouped_gemm(const Given& given) {
  const std::size_t n = given.dim("n");
  const std::string epilogue = given.problem.attribute("epilogue", "none");
  const ScaledProducts products(given, epilogue == "none" ? n : 2 * n);
  std::vector<float> out(given["A"].size() / given.dim("k") * n,
                         std::numeric_limits<float>::quiet_NaN());
  for (const auto& [group, first, end] : rows_of_groups(given)) {
    for (std::size_t i = first * n; i < end * n; ++i) {
      const std::size_t row = i / n, col = i % n;
      Float x = products.at(row, col, group);
      if (epilogue == "swiglu") x = silu(x) * products.at(row, n + col, group);
      if (epilogue == "geglu") x = gelu_tanh(x) * products.at(row, n + col, group);
      out[i] = x.value();
    }
  }
  return {out};
}

/// Returns bytes of random finite numbers. The second one of a byte follows from its first.
Contents finite_bytes(kernels::ByteFormat format) {
  return [format](double draw, std::size_t i) {
    const double largest = kernels::traits(format).largest;
    const int byte = kernels::encode_byte(format, 2 * draw * largest);
    if (kernels::traits(format).bits == 8) return static_cast<double>(byte);
    const double other = std::fmod(draw * 1e6 + static_cast<double>(i), 1.0);
    return static_cast<double>(byte | kernels::encode_byte(format, 2 * other * largest) << 4);
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
  /// Scales are powers of two; `format_b` is that of B.
  const auto mx = [](const char* what, const char* format, std::string_view format_b,
                     const Factors& factors) {
    const std::string_view of_b = format_b == "same" ? format : format_b;
    const auto bytes_of = [](std::string_view name) {
      return finite_bytes(kernels::byte_format_from_string(name).value());
    };
    const auto powers_of = [](std::string_view name) {
      const double largest = kernels::traits(*kernels::byte_format_from_string(name)).largest;
      return between(124 - std::ilogb(largest), 127.9 - std::ilogb(largest));
    };
    Case of{what,
            {{"format", format}, {"scales", "mx"}, {"m", "140"}, {"n", "140"}, {"k", "416"}},
            {{"A", bytes_of(format)},
             {"B", bytes_of(of_b)},
             {"scales_a", powers_of(format)},
             {"scales_b", powers_of(of_b)}},
            factors};
    if (format_b != "same") of.options.emplace_back("format_b", format_b);
    return of;
  };
  using kernels::ByteFormat;
  return {
      mx("e4m3 with scales mx", "e4m3", "same", {9.8, 0, 0, 3.3, 1.4}),
      mx("e5m2 by e4m3 with scales mx", "e5m2", "e4m3", {12.1, 0, 0, 3.4, 1.4}),
      mx("e2m1 by e5m2 with scales mx", "e2m1", "e5m2", {13.9, 0, 0, 3.5, 1.4}),
      mx("e4m3 by e2m1 with scales mx", "e4m3", "e2m1", {13.2, 0, 0, 3.5, 1.4}),
      // Sums are exact.
      mx("e2m1 with scales mx", "e2m1", "same", {0, 0, 0, 2.7, 1.4}),
      with("e4m3", ByteFormat::e4m3, "tensor", {4.7, 0, 0, 3.1, 2}),
      with_subnormal_numbers(with("", ByteFormat::e4m3, "tensor", {5.9, 0, 0, 5.8, 3.8})),
      with("e5m2 with scales of rows", ByteFormat::e5m2, "row", {8, 0, 0, 3.7, 2}),
      with("e4m3_fnuz with scales of blocks", ByteFormat::e4m3_fnuz, "block", {6, 0, 0, 3.4, 2}),
      with("e5m2_fnuz", ByteFormat::e5m2_fnuz, "tensor", {8, 0, 0, 3.8, 2}),
      with("int8 with scales of rows", ByteFormat::int8, "row", {48, 0, 0, 1.2, 1.2}),
      with("int8 with scales of blocks", ByteFormat::int8, "block", {30, 0, 0, 1.2, 1.2})};
}

/// The same numbers in groups.
std::vector<Case> scaled_grouped_gemm_cases(const DTypes&) {
  const auto with = [](const char* what, kernels::ByteFormat format, const char* scales,
                       const char* epilogue, bool masked, const Factors& factors) {
    const Contents bytes = finite_bytes(format);
    const double most = 1 / kernels::traits(format).largest;
    Case of{what,
            {{"form", masked ? "masked" : "contiguous"},
             {"format", std::string(kernels::to_string(format))},
             {"scales", scales},
             {"epilogue", epilogue},
             {"groups", "4"},
             {"m", masked ? "40" : "120"},
             {"n", "130"},
             {"k", "400"}},
            {{"A", bytes}, {"B", bytes}, {"scales_a", times(most)}, {"scales_b", times(most)}},
            factors};
    of.contents.emplace(masked ? "rows" : "ends", [masked](double, std::size_t group) {
      return masked ? 30.0 : 30.0 * static_cast<double>(group);
    });
    return of;
  };
  using kernels::ByteFormat;
  Case skewed = with("e4m3", ByteFormat::e4m3, "tensor", "none", false, {4.4, 0, 0, 3.1, 1.4});
  skewed.options.emplace_back("routing", "skewed");
  return {skewed,
          with("e5m2 with scales of rows, masked", ByteFormat::e5m2, "row", "none", true,
               {7.2, 0, 0, 3.4, 1.5}),
          with("e4m3_fnuz with scales of blocks", ByteFormat::e4m3_fnuz, "block", "none", false,
               {3, 0, 0, 3.3, 1.5}),
          with("e5m2_fnuz", ByteFormat::e5m2_fnuz, "tensor", "none", false, {6.2, 0, 0, 3.2, 1.5}),
          with("int8 with scales of rows", ByteFormat::int8, "row", "none", false,
               {39, 0, 0, 1.2, 1.2}),
          with("swiglu", ByteFormat::e4m3, "block", "swiglu", false, {7.4, 0, 0, 6.8, 2.2}),
          with("geglu, masked", ByteFormat::e4m3, "row", "geglu", true, {6.8, 0, 0, 1.2, 2.1})};
}

}  // namespace

std::vector<Emulation> scaled_emulations() {
  return {{"scaled_gemm", scaled_gemm_cases, scaled_gemm},
          {"scaled_grouped_gemm", scaled_grouped_gemm_cases, scaled_grouped_gemm}};
}

}  // namespace greta::test::bounds
