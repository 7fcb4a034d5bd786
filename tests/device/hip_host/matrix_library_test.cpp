// Protects: products of a vendor's library, through hip-host's own library with the same interface:
// every layout, type and addend, every algorithm, scales of tensors, rows and blocks, sums of
// integers, in a stream and in a graph; and that a product that can't be computed is a failure with
// a reason.

#include "runtime/device/hip/matrix_library.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <tuple>

#include "runtime/device/matrix_product.hpp"
#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::matrix_library_test {
namespace {

OpenOptions with_vendor() {
  OpenOptions options;
  options.vendor = true;
  return options;
}

/// `slices`: of K; 0: as the library ranks the algorithm.
KernelSource source_of(const MatrixProduct& product, int slices = 0) {
  KernelSource source;
  if (slices > 0) source.options = {"SPLITK=" + std::to_string(slices)};
  source.name = "test";
  source.language = Language::hip;
  source.argument_bytes = sizeof(MatrixProductArguments);
  source.call = product;
  return source;
}

std::vector<std::byte> bytes_of_arguments(const MatrixProductArguments& arguments) {
  std::vector<std::byte> bytes(sizeof arguments);
  std::memcpy(bytes.data(), &arguments, sizeof arguments);
  return bytes;
}

/// Small integers, which every type and every order of summation holds exactly.
std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 7) - 3);
  return values;
}

std::uint16_t narrow(float value, DType type) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (type == DType::bf16) return static_cast<std::uint16_t>(bits >> 16);
  if (value == 0) return 0;
  const auto exponent = static_cast<int>(bits >> 23 & 255) - 127 + 15;
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000) | static_cast<unsigned>(exponent) << 10 |
                                    (bits >> 13 & 1023));
}

/// Returns the byte of e4m3 of an integer of at most 3.
std::uint8_t e4m3_of(float value) {
  constexpr std::array<std::uint8_t, 4> sizes{0, 0x38, 0x40, 0x44};
  return static_cast<std::uint8_t>(sizes.at(static_cast<std::size_t>(std::abs(value))) |
                                   (value < 0 ? 0x80 : 0));
}

float widened(std::uint16_t bits, DType type) {
  if (type == DType::bf16) return std::bit_cast<float>(std::uint32_t{bits} << 16);
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                                   : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

/// A product on hip-host with operands of random numbers.
class Product {
 public:
  Product(HostDevice& host, const MatrixProduct& product) : host_(host), product_(product) {
    a_ = numbers(product.m * product.k, 1);
    b_ = numbers(product.k * product.n, 2);
    c_ = numbers(product.m * product.n, 3);
    bias_ = numbers(product.n, 4);
    buffers_.push_back(upload(a_, product.in));
    buffers_.push_back(upload(b_, product.in));
    buffers_.push_back(upload(c_, product.out));
    buffers_.push_back(upload(std::vector<float>(c_.size(), 99), product.out));
    buffers_.push_back(upload(bias_, product.out));
    buffers_.push_back(host.device().allocate(product.workspace_bytes + 4).value());
    const bool blocks = product.scales == MatrixScales::block;
    scales_a_ = scales_of(product.m * (blocks ? k_blocks() : 1), 5);
    scales_b_ = scales_of(blocks ? (product.n + 127) / 128 * padded_blocks() : product.n, 6);
    buffers_.push_back(host.upload(scales_a_));
    buffers_.push_back(host.upload(scales_b_));
  }

  std::vector<std::byte> arguments() const {
    const auto at = [&](std::size_t i) { return buffers_[i]->address(); };
    return bytes_of_arguments({at(0), at(1), product_.beta != 0 ? at(2) : at(3), at(3),
                               product_.bias ? at(4) : 0, product_.workspace_bytes != 0 ? at(5) : 0,
                               at(6), at(7)});
  }

  std::vector<float> result() {
    const std::size_t size = product_.m * product_.n;
    std::vector<float> values(size);
    if (product_.out == DType::i32) {
      std::vector<std::int32_t> sums(size);
      host_.device().download(*buffers_[3], 0, std::as_writable_bytes(std::span(sums))).value();
      return {sums.begin(), sums.end()};
    }
    if (product_.out == DType::f32) {
      host_.device().download(*buffers_[3], 0, std::as_writable_bytes(std::span(values))).value();
      return values;
    }
    std::vector<std::uint16_t> bits(size);
    host_.device().download(*buffers_[3], 0, std::as_writable_bytes(std::span(bits))).value();
    for (std::size_t i = 0; i < size; ++i) values[i] = widened(bits[i], product_.out);
    return values;
  }

  std::vector<float> expected() const {
    const auto& [m, n, k] = std::tie(product_.m, product_.n, product_.k);
    std::vector<float> values;
    for (std::size_t row = 0; row < m; ++row) {
      for (std::size_t col = 0; col < n; ++col) {
        float sum = 0;
        for (std::size_t i = 0; i < k; ++i) {
          sum += a_[product_.transposed_a ? i * m + row : row * k + i] *
                 b_[product_.transposed_b ? col * k + i : i * n + col] * scale(row, col, i);
        }
        sum = product_.alpha * sum + product_.beta * c_[row * n + col];
        values.push_back(sum + (product_.bias ? bias_[col] : 0));
      }
    }
    return values;
  }

 private:
  std::uint64_t k_blocks() const { return (product_.k + 127) / 128; }
  std::uint64_t padded_blocks() const { return (k_blocks() + 3) / 4 * 4; }

  /// Returns the factor of a product of two elements.
  float scale(std::size_t row, std::size_t col, std::size_t i) const {
    switch (product_.scales) {
      case MatrixScales::tensor:
        return scales_a_[0] * scales_b_[0];
      case MatrixScales::row:
        return scales_a_[row] * scales_b_[col];
      case MatrixScales::block:
        return scales_a_[i / 128 * product_.m + row] *
               scales_b_[col / 128 * padded_blocks() + i / 128];
      default:
        return 1;
    }
  }

  /// Powers of two, which keep results exact.
  static std::vector<float> scales_of(std::size_t count, unsigned seed) {
    std::vector<float> scales = numbers(count, seed);
    for (float& scale : scales) scale = std::ldexp(1.0F, static_cast<int>(scale));
    return scales;
  }

  std::unique_ptr<Buffer> upload(const std::vector<float>& values, DType type) {
    if (type == DType::f32) return host_.upload(values);
    if (type == DType::i32)
      return host_.upload(std::vector<std::int32_t>(values.begin(), values.end()));
    if (type == DType::i8)
      return host_.upload(std::vector<std::int8_t>(values.begin(), values.end()));
    if (type == DType::u8) {
      std::vector<std::uint8_t> bytes;
      for (const float value : values) bytes.push_back(e4m3_of(value));
      return host_.upload(bytes);
    }
    std::vector<std::uint16_t> bits;
    for (const float value : values) bits.push_back(narrow(value, type));
    return host_.upload(bits);
  }

  HostDevice& host_;
  MatrixProduct product_;
  std::vector<float> a_, b_, c_, bias_, scales_a_, scales_b_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

class HipHostMatrixLibrary : public ::testing::Test {
 protected:
  /// Computes a product in a stream and returns whether the result is exact.
  void expect_exact(const MatrixProduct& product, int slices = 0) {
    SCOPED_TRACE(product.text());
    const auto kernel = host_.device().compile(source_of(product, slices)).value();
    Product computed(host_, product);
    const auto stream = host_.device().create_stream().value();
    stream->launch(*kernel, {1, 1, 1}, computed.arguments()).value();
    stream->synchronize(std::chrono::seconds(20)).value();
    EXPECT_EQ(computed.result(), computed.expected());
  }
  std::string refusal(const MatrixProduct& product, int slices = 0) {
    const auto kernel = host_.device().compile(source_of(product, slices));
    return kernel ? "compiled" : kernel.failure().message;
  }

  HostDevice host_{gfx942, with_vendor()};
};

TEST_F(HipHostMatrixLibrary, EveryLayoutTypeAndAddendIsExact) {
  for (const bool transposed_a : {false, true}) {
    for (const bool transposed_b : {false, true}) {
      for (const auto& [in, out] : {std::pair(DType::f32, DType::f32),
                                    {DType::f16, DType::f16},
                                    {DType::bf16, DType::f32}}) {
        for (const bool bias : {false, true}) {
          MatrixProduct product{.m = 5, .n = 7, .k = 9, .in = in, .out = out};
          product.transposed_a = transposed_a;
          product.transposed_b = transposed_b;
          product.bias = bias;
          product.alpha = bias ? 0.5F : 1;
          product.beta = bias ? 0 : 2;
          expect_exact(product);
        }
      }
    }
  }
}

TEST_F(HipHostMatrixLibrary, EveryAlgorithmIsExact) {
  MatrixProduct product{.m = 6, .n = 4, .k = 11};
  product.workspace_bytes = 6 * 4 * 4;
  for (product.rank = 0; product.rank < 3; ++product.rank) expect_exact(product);
}

TEST_F(HipHostMatrixLibrary, SlicesOfKAreExactAndTold) {
  MatrixProduct product{.m = 6, .n = 4, .k = 11};
  product.workspace_bytes = 7 * 6 * 4 * 4;
  for (const int slices : {1, 2, 4, 8}) {
    expect_exact(product, slices);
    const auto kernel = host_.device().compile(source_of(product, slices)).value();
    EXPECT_EQ(kernel->listing().value(),
              "algorithm 0, tile 8x8, stages 16x1, " + std::to_string(slices) +
                  (slices == 1 ? " slice" : " slices summed in f32") + ", cluster 1x1x1");
  }
  product.rank = 2;  // has two slices of its own
  const auto ranked = host_.device().compile(source_of(product)).value();
  EXPECT_NE(ranked->listing().value().find(" 2 slices summed in f32"), std::string::npos);
  expect_exact(product, 1);
}

TEST_F(HipHostMatrixLibrary, SlicesThatTheLibraryRefusesAreFailures) {
  MatrixProduct product{.m = 6, .n = 4, .k = 7};
  product.workspace_bytes = 7 * 6 * 4 * 4 - 1;
  EXPECT_NE(refusal(product, 8).find("MatmulAlgoCheck fails with status 7"), std::string::npos)
      << "a slice would be empty: " << refusal(product, 8);
  product.k = 8;
  EXPECT_NE(refusal(product, 8).find("8 slices of K need 672 bytes of workspace"),
            std::string::npos)
      << refusal(product, 8);
  product.rank = 1;
  EXPECT_NE(refusal(product, 2).find("MatmulAlgoCheck fails"), std::string::npos)
      << "backwards: " << refusal(product, 2);
  KernelSource source = source_of(product);
  source.options = {"SPLITK=two"};
  EXPECT_FALSE(host_.device().compile(source));
  source.options = {"-O3"};
  EXPECT_FALSE(host_.device().compile(source));
}

TEST_F(HipHostMatrixLibrary, AGraphComputesEachReplay) {
  const MatrixProduct product{.m = 3, .n = 8, .k = 5, .in = DType::f32, .out = DType::f32};
  const auto kernel = host_.device().compile(source_of(product)).value();
  Product computed(host_, product);
  const auto graph = host_.device()
                         .create_graph([&](Stream& stream) {
                           return stream.launch(*kernel, {1, 1, 1}, computed.arguments());
                         })
                         .value();
  EXPECT_EQ(computed.result(), std::vector<float>(24, 99)) << "recording computes nothing";
  const auto stream = host_.device().create_stream().value();
  for (int i = 0; i < 2; ++i) {
    stream->replay(*graph).value();
    stream->synchronize(std::chrono::seconds(20)).value();
    EXPECT_EQ(computed.result(), computed.expected());
  }
}

MatrixProduct product_of_fp8(MatrixScales scales) {
  MatrixProduct product{.m = 5, .n = 8, .k = 16, .in = DType::u8, .out = DType::bf16};
  product.transposed_b = true;
  product.scales = scales;
  return product;
}

TEST_F(HipHostMatrixLibrary, ScaledProductsAreExact) {
  for (const MatrixScales scales : {MatrixScales::tensor, MatrixScales::row}) {
    for (const DType out : {DType::bf16, DType::f32}) {
      MatrixProduct product = product_of_fp8(scales);
      product.out = out;
      product.workspace_bytes = 5 * 8 * 4;
      for (product.rank = 0; product.rank < 3; ++product.rank) expect_exact(product);
    }
  }
}

TEST_F(HipHostMatrixLibrary, ProductsWithScalesOfBlocksAreExact) {
  // Blocks of k and of columns that are not whole, and fours of blocks that are not.
  for (const std::uint64_t k : {16, 144, 528}) {
    MatrixProduct product = product_of_fp8(MatrixScales::block);
    product.m = 8;
    product.n = 136;
    product.k = k;
    product.out = DType::f32;
    product.workspace_bytes = 8 * 136 * 4;
    for (product.rank = 0; product.rank < 3; ++product.rank) expect_exact(product);
  }
}

MatrixProduct product_of_integers() {
  MatrixProduct product{.m = 5, .n = 12, .k = 32, .in = DType::i8, .out = DType::i32};
  product.transposed_b = true;
  return product;
}

TEST_F(HipHostMatrixLibrary, SumsOfIntegersAreExact) {
  MatrixProduct product = product_of_integers();
  product.workspace_bytes = 7 * 5 * 12 * 4;
  for (product.rank = 0; product.rank < 3; ++product.rank) expect_exact(product);
  product.rank = 0;
  expect_exact(product, 8);
  const auto kernel = host_.device().compile(source_of(product, 2)).value();
  EXPECT_NE(kernel->listing().value().find(" 2 slices summed in i32"), std::string::npos);
}

TEST_F(HipHostMatrixLibrary, SumsOfIntegersThatTheLibraryRefusesAreFailures) {
  MatrixProduct product = product_of_integers();
  product.transposed_b = false;
  EXPECT_NE(refusal(product).find("has no algorithm"), std::string::npos) << refusal(product);
  product = product_of_integers();
  product.n = 10;
  EXPECT_NE(refusal(product).find("has no algorithm"), std::string::npos) << refusal(product);
  product = product_of_integers();
  product.k = 30;
  EXPECT_NE(refusal(product).find("has no algorithm"), std::string::npos) << refusal(product);
  product = product_of_integers();
  product.out = DType::f32;
  EXPECT_NE(refusal(product).find("no matrix products of i32"), std::string::npos);
  product = product_of_integers();
  product.alpha = 2;
  EXPECT_NE(refusal(product).find("no factors and no addends"), std::string::npos);
}

TEST_F(HipHostMatrixLibrary, AGraphComputesScaledProducts) {
  const auto kernel = host_.device().compile(source_of(product_of_fp8(MatrixScales::row))).value();
  // Two products in a graph have addresses of their own.
  Product one(host_, product_of_fp8(MatrixScales::row));
  Product other(host_, product_of_fp8(MatrixScales::row));
  const auto graph = host_.device()
                         .create_graph([&](Stream& stream) {
                           auto recorded = stream.launch(*kernel, {1, 1, 1}, one.arguments());
                           if (!recorded) return recorded;
                           return stream.launch(*kernel, {1, 1, 1}, other.arguments());
                         })
                         .value();
  const auto stream = host_.device().create_stream().value();
  stream->replay(*graph).value();
  stream->synchronize(std::chrono::seconds(20)).value();
  EXPECT_EQ(one.result(), one.expected());
  EXPECT_EQ(other.result(), other.expected());
}

TEST_F(HipHostMatrixLibrary, ScaledProductsThatTheLibraryRefusesAreFailures) {
  MatrixProduct product = product_of_fp8(MatrixScales::tensor);
  product.transposed_b = false;
  EXPECT_NE(refusal(product).find("has no algorithm"), std::string::npos) << refusal(product);
  product = product_of_fp8(MatrixScales::row);
  product.n = 7;
  EXPECT_NE(refusal(product).find("has no algorithm"), std::string::npos) << refusal(product);
  product = product_of_fp8(MatrixScales::block);  // of 5 rows
  EXPECT_NE(refusal(product).find("has no algorithm"), std::string::npos) << refusal(product);
  product = product_of_fp8(MatrixScales::none);
  EXPECT_NE(refusal(product).find("products of fp8 have scales"), std::string::npos);
  product = product_of_fp8(MatrixScales::tensor);
  product.in = DType::f16;
  EXPECT_NE(refusal(product).find("has no algorithm"), std::string::npos) << refusal(product);
}

TEST_F(HipHostMatrixLibrary, WhatCanNotBeComputedIsAFailure) {
  MatrixProduct product{.m = 2, .n = 2, .k = 2};
  product.rank = 16;
  EXPECT_NE(refusal(product).find("ranks 16 algorithms"), std::string::npos) << refusal(product);
  product.rank = 0;
  product.in = DType::i32;
  EXPECT_NE(refusal(product).find("no matrix products of i32"), std::string::npos);
}

TEST_F(HipHostMatrixLibrary, KeysTellProductsAndLibrariesApart) {
  MatrixProduct product{.m = 2, .n = 2, .k = 2};
  const std::string key = source_of(product).content_key("a", "b");
  EXPECT_NE(key, source_of(product).content_key("another version", "b"));
  EXPECT_NE(key, source_of(product, 2).content_key("a", "b"));
  product.rank = 1;
  EXPECT_NE(key, source_of(product).content_key("a", "b"));
  EXPECT_NE(source_of(product_of_fp8(MatrixScales::tensor)).content_key("a", "b"),
            source_of(product_of_fp8(MatrixScales::row)).content_key("a", "b"));
  EXPECT_NE(source_of(product_of_fp8(MatrixScales::block)).content_key("a", "b"),
            source_of(product_of_fp8(MatrixScales::row)).content_key("a", "b"));
}

TEST(HipHostWithoutMatrixLibrary, ProductsAreRefused) {
  HostDevice host{gfx942};
  EXPECT_EQ(host.device().info().matrix_library, "");
  const auto kernel = host.device().compile(source_of({.m = 2, .n = 2, .k = 2}));
  ASSERT_FALSE(kernel);
  EXPECT_NE(kernel.failure().message.find("it needs a vendor's library"), std::string::npos)
      << kernel.failure().message;
}

}  // namespace
}  // namespace greta::test::matrix_library_test
