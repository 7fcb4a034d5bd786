// Protects: element types, their conversions and storage, and random tensors.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/model/embedded.hpp"
#include "kernels/model/tensor.hpp"
#include "runtime/device/dtype.hpp"
#include "runtime/device/result.hpp"
#include "runtime/device/text/hash.hpp"
#include "tests/layers.hpp"

namespace greta::test::model_test {
namespace {

std::uint16_t store16(DType type, double value) {
  std::uint16_t bits = 0;
  store_element(type, reinterpret_cast<std::byte*>(&bits), 0, value);
  return bits;
}

double load16(DType type, std::uint16_t bits) {
  return load_element(type, reinterpret_cast<const std::byte*>(&bits), 0);
}

class SixteenBit : public testing::TestWithParam<DType> {};

TEST_P(SixteenBit, EveryNumberIsReadBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto stored = static_cast<std::uint16_t>(bits);
    const double value = load16(GetParam(), stored);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(load16(GetParam(), store16(GetParam(), value)))) << bits;
    } else {
      ASSERT_EQ(store16(GetParam(), value), stored) << value;
    }
  }
}

TEST_P(SixteenBit, RoundsToNearestEven) {
  for (std::uint16_t bits = 0;; ++bits) {
    const double low = load16(GetParam(), bits);
    const double high = load16(GetParam(), static_cast<std::uint16_t>(bits + 1));
    if (std::isinf(high)) break;
    const double middle = low + (high - low) / 2;
    const auto even = static_cast<std::uint16_t>(bits + (bits & 1));
    ASSERT_EQ(store16(GetParam(), middle), even) << low;
    ASSERT_EQ(store16(GetParam(), std::nextafter(middle, 0)), bits) << low;
    ASSERT_EQ(store16(GetParam(), std::nextafter(middle, high)), bits + 1) << low;
    ASSERT_EQ(store16(GetParam(), -middle), even | 0x8000) << low;
  }
}

TEST_P(SixteenBit, OverflowsToInfinityFromHalfAStepPastTheLargest) {
  std::uint16_t largest = 0;
  while (std::isfinite(load16(GetParam(), static_cast<std::uint16_t>(largest + 1)))) ++largest;
  const double top = load16(GetParam(), largest);
  const double step = top - load16(GetParam(), static_cast<std::uint16_t>(largest - 1));
  EXPECT_EQ(store16(GetParam(), std::nextafter(top + step / 2, 0)), largest);
  for (const double value : {top + step / 2, 1e300, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(load16(GetParam(), store16(GetParam(), value)),
              std::numeric_limits<double>::infinity());
    EXPECT_EQ(load16(GetParam(), store16(GetParam(), -value)),
              -std::numeric_limits<double>::infinity());
  }
}

TEST_P(SixteenBit, ConstantsDescribeTheFormat) {
  const std::uint16_t one = store16(GetParam(), 1);
  EXPECT_EQ(load16(GetParam(), static_cast<std::uint16_t>(one + 1)) - 1,
            2 * unit_roundoff(GetParam()));
  const double normal = smallest_normal(GetParam());
  const std::uint16_t bits = store16(GetParam(), normal);
  EXPECT_EQ(load16(GetParam(), bits), normal);
  EXPECT_EQ(std::popcount(bits), 1);  // an exponent of 1, no mantissa
}

INSTANTIATE_TEST_SUITE_P(Types, SixteenBit, testing::Values(DType::f16, DType::bf16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST(DType, KnownValues) {
  EXPECT_EQ(store16(DType::f16, 1.0), 0x3c00);
  EXPECT_EQ(store16(DType::f16, 65504), 0x7bff);
  EXPECT_EQ(store16(DType::f16, 0x1p-24), 0x0001);
  EXPECT_EQ(store16(DType::f16, 0x1p-25), 0x0000);
  EXPECT_EQ(store16(DType::f16, -0.0), 0x8000);
  EXPECT_EQ(store16(DType::f16, std::nan("")), 0x7e00);
  EXPECT_EQ(store16(DType::bf16, 3.14159274), 0x4049);
  // If rounded to f32 first, this would become a tie and lose its last bit.
  EXPECT_EQ(store16(DType::f16, 1 + 0x1p-11 + 0x1p-40), 0x3c01);
}

TEST(DType, NamesAndSizes) {
  for (const DTypeTraits& known : dtype_table) {
    EXPECT_EQ(dtype_from_string(known.name), known.type);
  }
  EXPECT_EQ(dtype_from_string("f8"), std::nullopt);
  EXPECT_EQ(dtype_from_string(""), std::nullopt);
  EXPECT_EQ(bytes_of(DType::f32, 3), 12);
  EXPECT_EQ(bytes_of(DType::bf16, std::size_t{3}), 6U);
  EXPECT_EQ(converted_types_text(), "f32, f16 or bf16");
}

// Limits that references, adversarial inputs and screens derive from the widths of the formats.
TEST(DType, LimitsAreThoseOfIeeeFormats) {
  EXPECT_EQ(unit_roundoff(DType::f32), 0x1p-24);
  EXPECT_EQ(unit_roundoff(DType::f16), 0x1p-11);
  EXPECT_EQ(unit_roundoff(DType::bf16), 0x1p-8);
  EXPECT_EQ(smallest_normal(DType::f32), 0x1p-126);
  EXPECT_EQ(smallest_normal(DType::f16), 0x1p-14);
  EXPECT_EQ(smallest_normal(DType::bf16), 0x1p-126);
  EXPECT_EQ(smallest_positive(DType::f32), 0x1p-149);
  EXPECT_EQ(smallest_positive(DType::f16), 0x1p-24);
  EXPECT_EQ(smallest_positive(DType::bf16), 0x1p-133);
  EXPECT_EQ(largest_finite(DType::f32), std::numeric_limits<float>::max());
  EXPECT_EQ(largest_finite(DType::f16), 65504);
  EXPECT_EQ(largest_finite(DType::bf16), 0x1.FEp127);
  EXPECT_EQ(underflow_error(DType::f16), 0x1p-25);
  EXPECT_EQ(underflow_error(DType::f32), 0x1p-126);
  EXPECT_EQ(largest_finite(DType::i32), 2147483647);
}

// Every floating type stores its special numbers: limits, NaN and infinities of both signs.
TEST(DType, EveryFloatingTypeStoresItsLimits) {
  for (const DTypeTraits& known : dtype_table) {
    if (!is_floating(known.type)) continue;
    const DType type = known.type;
    std::array<std::byte, 3 * sizeof(double)> memory{};
    const auto stored = [&](double value) {
      store_element(type, memory.data(), 1, value);
      return load_element(type, memory.data(), 1);
    };
    for (const double value :
         {0.0, 1.0, smallest_positive(type), smallest_normal(type), largest_finite(type),
          smallest_normal(type) - smallest_positive(type), 1 + 2 * unit_roundoff(type)}) {
      EXPECT_EQ(stored(value), value) << known.name;
      EXPECT_EQ(stored(-value), -value) << known.name;
    }
    const double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(stored(infinity), infinity) << known.name;
    EXPECT_EQ(stored(-infinity), -infinity) << known.name;
    EXPECT_EQ(stored(4 * largest_finite(type)), infinity) << known.name;
    EXPECT_TRUE(std::isnan(stored(std::nan("")))) << known.name;
    EXPECT_EQ(load_element(type, memory.data(), 0), 0) << "the element before it is not touched";
    EXPECT_EQ(load_element(type, memory.data(), 2), 0) << "nor the one after it";
  }
}

// Elements of less than 8 bits share bytes. Those of 8 and 16 bits are stored little-endian.
TEST(DType, PackedBitsAreWrittenAndReadApart) {
  for (const int bits : {1, 2, 4, 8, 16}) {
    std::array<std::byte, 33> memory{};
    const std::uint32_t mask = (1U << bits) - 1;
    const auto value_of = [&](std::size_t i) {
      return static_cast<std::uint32_t>(0x9E3779B9U * (i + 1) >> 11) & mask;
    };
    for (std::size_t i = 0; i < 16; ++i) write_bits(memory.data(), i, bits, mask);
    for (std::size_t i = 0; i < 16; ++i) write_bits(memory.data(), i, bits, value_of(i));
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(read_bits(memory.data(), i, bits), value_of(i)) << bits << " bits, " << i;
    }
    EXPECT_EQ(memory[static_cast<std::size_t>(2 * bits)], std::byte{0}) << bits;
  }
  std::array<std::byte, 2> nibbles{};
  write_bits(nibbles.data(), 1, 4, 0xA);
  EXPECT_EQ(nibbles[0], std::byte{0xA0}) << "the lowest bits of a byte come first";
}

TEST(RandomTensor, IsUniformNeverZeroAndRepeatable) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    const TensorSpec spec{"A", Role::input, type, 1 << 10, 1 << 11};  // two threads
    const HostTensor tensor = random_tensor(spec, 42);
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < spec.elements(); ++i) {
      const double value = tensor.at(i);
      ASSERT_NE(value, 0);
      ASSERT_LE(std::abs(value), 0.5);
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(spec.elements());
    EXPECT_NEAR(sum / count, 0, 5 * std::sqrt(1.0 / 12 / count));
    EXPECT_NEAR(squares / count, 1.0 / 12, 1e-3);
    EXPECT_EQ(random_tensor(spec, 42).data, tensor.data);
    EXPECT_NE(random_tensor(spec, 43).data, tensor.data);
  }
}

TEST(RandomTensor, HasTheSameRowsWhereTheyAreNotPackedAndNanBetween) {
  const TensorSpec spec{"A", Role::input, DType::f16, 3, 5, 8};
  EXPECT_EQ(spec.elements(), 15U);
  EXPECT_EQ(spec.bytes(), 42U);
  const HostTensor apart = random_tensor(spec, 7);
  const HostTensor together = random_tensor({"A", Role::input, DType::f16, 3, 5}, 7);
  ASSERT_EQ(apart.data.size(), spec.bytes());
  for (std::size_t i = 0; i < 21; ++i) {
    if (i % 8 < 5) {
      EXPECT_EQ(apart.at(i), together.at(i / 8 * 5 + i % 8)) << i;
    } else {
      EXPECT_TRUE(std::isnan(apart.at(i))) << i;
    }
  }
  EXPECT_EQ(packed(apart).data, together.data);
  EXPECT_EQ(placed(together, spec).data, apart.data);
}

TEST(TensorSpec, PlacesRowsOfBlocks) {
  TensorSpec apart{"A", Role::input, DType::f16, 6, 5, 8};  // three blocks of two rows
  apart.block_rows = 2;
  apart.block_stride = 20;
  EXPECT_EQ(apart.row_start(3), 28);
  EXPECT_EQ(apart.span(), 53);
  TensorSpec between = apart;  // the blocks' rows are side by side
  between.stride = 20;
  between.block_stride = 6;
  EXPECT_EQ(between.row_start(3), 26);
  EXPECT_EQ(between.span(), 37);
  for (const TensorSpec& spec : {apart, between}) {
    EXPECT_FALSE(spec.contiguous());
    EXPECT_EQ(packed(random_tensor(spec, 7)).data, random_tensor(packed(spec), 7).data);
    for (std::int64_t row = 0; row < 6; ++row) {
      for (std::int64_t col = 0; col < 5; ++col)
        EXPECT_EQ(spec.place(spec.row_start(row) + col), std::pair(row, col));
    }
    EXPECT_GE(spec.place(5).second, 5) << "the gap after the first row";
  }
  EXPECT_GE(apart.place(17).second, 5) << "the gap after the first block";
  EXPECT_GE(between.place(18).second, 5) << "the gap after the last block's row";
}

TEST(RandomTensor, DoesNotDependOnSizeOrMachine) {
  const HostTensor small = random_tensor({"A", Role::input, DType::f32, 1, 8}, 7);
  const HostTensor large = random_tensor({"A", Role::input, DType::f32, 3, 1 << 20}, 7);
  EXPECT_TRUE(std::equal(small.data.begin(), small.data.end(), large.data.begin()));
  const std::string_view bytes(reinterpret_cast<const char*>(large.data.data()), large.data.size());
  EXPECT_EQ(Hash().add(bytes).hex(), "c094d46ffa64ca36808b318bdbf0593e");
}

TEST(Embedded, FindsEveryFileAndNamesAMissingOne) {
  for (const EmbeddedFile& file : embedded_files()) {
    EXPECT_EQ(embedded_file(file.path).data(), file.text.data());
  }
  EXPECT_FALSE(embedded_files().empty());
  try {
    embedded_file("gemm/absent.comp");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no kernel source \"gemm/absent.comp\" was built into the library");
  }
}

}  // namespace
}  // namespace greta::test::model_test
