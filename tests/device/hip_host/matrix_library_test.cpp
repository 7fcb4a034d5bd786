// Protects: products of a vendor's library, through hip-host's own library with the same interface:
// every layout, type and addend, every algorithm, scales of tensors and rows, in a stream and in a
// graph; and that a product that can't be computed is a failure with a reason.

#include "runtime/device/hip/matrix_library.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
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
    scales_a_ = scales_of(product.m, 5);
    scales_b_ = scales_of(product.n, 6);
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
                 b_[product_.transposed_b ? col * k + i : i * n + col];
        }
        if (product_.scales != MatrixScales::none) {
          const bool rows = product_.scales == MatrixScales::row;
          sum *= scales_a_[rows ? row : 0] * scales_b_[rows ? col : 0];
        }
        sum = product_.alpha * sum + product_.beta * c_[row * n + col];
        values.push_back(sum + (product_.bias ? bias_[col] : 0));
      }
    }
    return values;
  }

 private:
  /// Powers of two, which keep results exact.
  static std::vector<float> scales_of(std::size_t count, unsigned seed) {
    std::vector<float> scales = numbers(count, seed);
    for (float& scale : scales) scale = std::ldexp(1.0F, static_cast<int>(scale));
    return scales;
  }

  std::unique_ptr<Buffer> upload(const std::vector<float>& values, DType type) {
    if (type == DType::f32) return host_.upload(values);
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

/// Returns the text of an algorithm with these settings, by number; others are unknown.
std::string text_of(const std::map<int, std::uint32_t>& settings) {
  hip::MatrixLibraryFunctions functions;
  functions.algorithm_get = [](const void* algorithm, int attribute, void* value, std::size_t bytes,
                               std::size_t* written) {
    const auto& all = *static_cast<const std::map<int, std::uint32_t>*>(algorithm);
    const auto found = all.find(attribute);
    // The shape of clusters has 16 bits.
    if (found == all.end() || bytes != (attribute == 8 ? 2 : 4)) return 1;
    std::memcpy(value, &found->second, *written = bytes);
    return 0;
  };
  return hip::text_of_algorithm(functions, &settings);
}

TEST(TextOfAlgorithm, HasTheNamesOfCublaslt) {
  EXPECT_EQ(text_of({{0, 66}, {1, 23}, {2, 4}, {3, 2}, {4, 1}, {6, 16}, {8, 3}}),
            "algorithm 66, tile 128x256, stages 64x4, 4 slices summed in f32, swizzling 1, "
            "cluster 2x1x1");
  EXPECT_EQ(text_of({{0, 7}, {1, 35}, {2, 1}, {3, 0}, {6, 24}, {8, 16}}),
            "algorithm 7, tile 256x32, stages 128x6, 1 slice, cluster 1x16x1");
  EXPECT_EQ(text_of({{1, 36}, {2, 2}, {3, 4}, {6, 36}}),
            "tile 8x128, stages 128xauto, 2 slices reduction 4");
  EXPECT_EQ(text_of({{6, 38}, {8, 17}}), "stages 768xauto, cluster 3x1x1");
  EXPECT_EQ(text_of({{6, 39}, {8, 51}}), "stages number 39, cluster 1x15x1");
  EXPECT_EQ(text_of({{1, 0}, {6, 29}, {8, 999}}),
            "tile number 0, stages number 29, "
            "cluster number 999");
  EXPECT_EQ(text_of({{6, 31}}), "stages 8x3");
  EXPECT_EQ(text_of({}), "");
  EXPECT_EQ(hip::text_of_algorithm({}, nullptr), "");
}

// By cublasLtMatmulTile_t: where the rows of tiles begin and end, and those that came before.
TEST(TextOfAlgorithm, HasTheNamesOfAllTiles) {
  const std::map<std::uint32_t, std::string> names{
      {46, "8x768"},    {47, "16x64"},     {70, "24x768"},     {71, "32x192"},   {72, "32x320"},
      {116, "64x192"},  {120, "64x576"},   {133, "72x640"},    {150, "88x512"},  {151, "96x192"},
      {176, "128x320"}, {177, "128x384"},  {232, "256x192"},   {264, "384x128"}, {279, "504x64"},
      {280, "520x64"},  {311, "768x64"},   {312, "64x16"},     {392, "64x760"},  {393, "128x8"},
      {439, "128x448"}, {447, "128x512"},  {458, "192x96"},    {485, "192x336"}, {495, "256x96"},
      {513, "256x256"}, {536, "320x200"},  {572, "448x144"},   {601, "640x8"},   {630, "768x80"},
      {631, "256x512"}, {634, "512x1024"}, {635, "number 635"}};
  for (const auto& [number, name] : names) EXPECT_EQ(text_of({{1, number}}), "tile " + name);
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
