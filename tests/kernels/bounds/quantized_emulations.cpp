#include <cmath>
#include <cstdint>

#include "kernels/model/weight_formats.hpp"
#include "tests/kernels/bounds/emulation.hpp"
#include "tests/layers.hpp"

/// Products with quantised weights.
namespace greta::test::bounds {
namespace {

/// Decodes weights of B, whose bytes are given as numbers.
class QuantizedRow {
 public:
  QuantizedRow(const Given& given, std::size_t row)
      : given_(given),
        format_(given.problem.attribute("weights", "int4")),
        row_(row),
        k_(given.dim("k")),
        bytes_(
            given["B"].size() /
            (given.dim("n") * (given.problem.attribute("epilogue", "none") == "swiglu" ? 2 : 1))) {}

  /// Weights that share a scale.
  std::size_t segment() const { return format_ == "q6_k" ? 16 : 32; }
  /// Returns a weight without its scale, or with q4_k as it is.
  Float at(std::size_t i) const {
    if (format_ == "int4") return number(half(i / 2, i % 2 == 1)) - zero(i, 8);
    if (format_ == "mxfp4") {
      return static_cast<float>(kernels::e2m1_value(half(i / 2, i % 2 == 1)));
    }
    if (format_ == "int8") {
      const int q = byte(i);
      return given_.has("zeros") ? number(q) - zero(i, 0) : number(q < 128 ? q : q - 256);
    }
    if (format_ == "q4_0") return number(half(i / 32 * 18 + 2 + i % 16, i % 32 >= 16) - 8);
    if (format_ == "q8_0") return number(signed_byte(i / 32 * 34 + 2 + i % 32));
    const std::size_t in = i % 256;
    if (format_ == "q4_k") {
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
    if (format_ == "q4_k") return 1;
    if (format_ == "q4_0") return f16(i / 32 * 18);
    if (format_ == "q8_0") return f16(i / 32 * 34);
    if (format_ == "q6_k") {
      const std::size_t block = i / 256 * 210;
      return Float(f16(block + 208)) * number(signed_byte(block + 192 + i % 256 / 16));
    }
    if (format_ == "mxfp4") return std::exp2(given_["scales"][group(i)] - 127);
    return given_["scales"][group(i)];
  }

 private:
  static Float number(int value) { return static_cast<float>(value); }
  int byte(std::size_t at) const { return static_cast<int>(given_["B"][row_ * bytes_ + at]); }
  int signed_byte(std::size_t at) const { return static_cast<std::int8_t>(byte(at)); }
  int half(std::size_t at, bool upper) const { return upper ? byte(at) / 16 : byte(at) % 16; }
  float f16(std::size_t at) const {
    const std::byte raw[2] = {static_cast<std::byte>(byte(at)),
                              static_cast<std::byte>(byte(at + 1))};
    return static_cast<float>(load_element(DType::f16, raw, 0));
  }
  std::size_t group(std::size_t i) const {
    const std::size_t length =
        format_ == "mxfp4" ? 32 : std::stoul(given_.problem.attribute("group", "128"));
    return row_ * (k_ / length) + i / length;
  }
  Float zero(std::size_t i, float otherwise) const {
    return given_.has("zeros") ? given_["zeros"][group(i)] : otherwise;
  }

  const Given& given_;
  std::string format_;
  std::size_t row_, k_, bytes_;
};

/// The product, without its epilogue.
std::vector<Float> quantized_product(const Given& given, std::size_t n) {
  const std::size_t m = given.dim("m"), k = given.dim("k");
  const auto& a = given["A"];
  std::vector<Float> out(m * n);
  for (std::size_t col = 0; col < n; ++col) {
    const QuantizedRow weights(given, col);
    const std::size_t segment = weights.segment();
    std::vector<Float> row, scales;
    for (std::size_t i = 0; i < k; ++i) row.push_back(weights.at(i));
    for (std::size_t i = 0; i < k; i += segment) scales.push_back(weights.scale(i));
    for (std::size_t i = 0; i < m; ++i) {
      const auto part = [&](std::size_t s) {
        return dot(
            segment, [&](std::size_t l) { return Float(a[i * k + s * segment + l]); },
            [&](std::size_t l) { return row[s * segment + l]; });
      };
      out[i * n + col] = dot(k / segment, part, [&](std::size_t s) { return scales[s]; });
    }
  }
  return out;
}

Outputs quantized_gemm(const Given& given) {
  const std::size_t m = given.dim("m"), n = given.dim("n");
  const std::string epilogue = given.problem.attribute("epilogue", "none");
  const bool gated = epilogue == "swiglu";
  const std::size_t products = gated ? 2 * n : n;
  const std::vector<Float> sums = quantized_product(given, products);
  std::vector<float> out(m * n);
  for (std::size_t i = 0; i < m * n; ++i) {
    const std::size_t row = i / n, col = i % n;
    Float x = sums[row * products + col];
    if (gated) x = silu(x) * sums[row * products + n + col];
    if (epilogue == "bias") x = x + Float(given["bias"][col]);
    if (epilogue == "residual") x = x + Float(given["residual"][i]);
    out[i] = x.value();
  }
  return {out};
}

/// Returns bytes of blocks: random ones, but for an f16 of 2^-9 in the two bytes at `scale`.
Contents bytes_of_blocks(std::size_t bytes, std::size_t scale) {
  return [=](double draw, std::size_t i) {
    if (i % bytes == scale) return 0.0;
    if (i % bytes == scale + 1) return 24.0;
    return std::floor((draw + 0.5) * 256);
  };
}

/// Blocks of q4_k with the scale 2^-9, the minimum 7.5 times that, and factors of 33.
double byte_of_q4_k(double draw, std::size_t i) {
  const std::size_t at = i % 144;
  if (at < 4) return at == 1 ? 24 : at == 3 ? 35 : at == 2 ? 128 : 0;
  if (at < 12) return 0x80 | 33;  // and the upper two bits of the last four
  if (at < 16) return 0x11;
  return std::floor((draw + 0.5) * 256);
}

std::vector<Case> quantized_gemm_cases(const DTypes&) {
  const Contents bytes = index_below(256);
  const auto with = [](const char* what, std::vector<std::pair<std::string, std::string>> more,
                       std::map<std::string, Contents> contents, const Factors& factors) {
    more.insert(more.end(), {{"m", "100"}, {"n", "96"}, {"k", "256"}});
    return Case{what, more, std::move(contents), factors};
  };
  return {with("int4", {}, {{"B", bytes}}, {13, 12.8, 14, 1.1, 1.1}),
          with("int8 in groups of 64", {{"weights", "int8"}, {"group", "64"}}, {{"B", bytes}},
               {11, 15, 18.3, 1.1, 1.1}),
          with("zero points", {{"group", "32"}, {"zeros", "groups"}},
               {{"B", bytes}, {"zeros", index_below(16)}}, {13.8, 17.8, 20, 1.1, 1.1}),
          with("q4_0", {{"weights", "q4_0"}}, {{"B", bytes_of_blocks(18, 0)}},
               {13.6, 37.7, 45.5, 1.1, 1.1}),
          with("q8_0", {{"weights", "q8_0"}}, {{"B", bytes_of_blocks(34, 0)}},
               {14.8, 17.7, 24, 1.1, 1.1}),
          with("q4_k", {{"weights", "q4_k"}}, {{"B", byte_of_q4_k}}, {12.2, 15.1, 15.2, 1.1, 1.1}),
          with("q6_k", {{"weights", "q6_k"}}, {{"B", bytes_of_blocks(210, 208)}},
               {12, 10.1, 17.5, 1.1, 1.1}),
          with("mxfp4", {{"weights", "mxfp4"}},
               {{"B", bytes}, {"scales", [](double, std::size_t) { return 124; }}},
               {12.6, 21.8, 47.5, 1.1, 1.1}),
          with("bias", {{"epilogue", "bias"}}, {{"B", bytes}}, {13, 13, 14, 1.1, 1.1}),
          with("residual", {{"epilogue", "residual"}}, {{"B", bytes}}, {13.3, 13, 14.6, 1.1, 1.1}),
          with("gates", {{"epilogue", "swiglu"}}, {{"B", bytes}}, {13, 13, 14, 1.1, 1.1})};
}

}  // namespace

std::vector<Emulation> quantized_emulations() {
  return {{"quantized_gemm", quantized_gemm_cases, quantized_gemm}};
}

}  // namespace greta::test::bounds
