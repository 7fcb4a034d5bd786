// Protects: each block format of GGUF is decoded to the weights that it was packed from, and as
// numpy decodes it; those that kernels read in another format keep their weights.

#include "kernels/model/block_formats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "kernels/model/weight_formats.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/block_files.hpp"
#include "tests/pipeline/model_files.hpp"

namespace greta::test::block_formats_test {
namespace {

TEST(BlockFormats, DecodeWhatWasPacked) {
  for (const auto& [format, name, elements, bytes] : block_format_table) {
    const RandomBlocks random(format, 50, 1, 7);
    std::vector<double> values(random.values.size());
    decode_blocks(format, reinterpret_cast<const std::byte*>(random.bytes.data()), 50,
                  values.data());
    EXPECT_EQ(values, random.values) << to_string(format);
    EXPECT_EQ(values.size(), 50 * block_traits(format).elements);
  }
}

// data/gguf_blocks.json has random bytes and what scripts/gguf_blocks.py makes of them with numpy.
TEST(BlockFormats, DecodeWhatNumpyDecodes) {
  const nlohmann::json all = nlohmann::json::parse(read_file(GRETA_TEST_DATA "/gguf_blocks.json"));
  ASSERT_EQ(all.size(), block_format_table.size());
  for (const BlockFormatTraits& traits : block_format_table) {
    const nlohmann::json& one = all.at(std::string(traits.name));
    const auto want = one.at("values").get<std::vector<double>>();
    const auto digits = one.at("bytes").get<std::string>();
    std::vector<std::byte> bytes(digits.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
    }
    const std::size_t blocks = bytes.size() / traits.bytes;
    ASSERT_EQ(want.size(), blocks * traits.elements);
    std::vector<double> got(want.size());
    decode_blocks(traits.format, bytes.data(), blocks, got.data());
    EXPECT_EQ(got, want) << traits.name;
  }
}

TEST(BlockFormats, RewrittenOnesHaveTheSameWeights) {
  int rewritten = 0;
  for (const BlockFormatTraits& traits : block_format_table) {
    const auto same = same_weights(traits.format);
    if (!same || *same == traits.format) continue;
    ++rewritten;
    const RandomBlocks random(traits.format, 50, 1, 9);
    ASSERT_EQ(block_traits(*same).elements, traits.elements);
    std::vector<std::byte> to(50 * block_traits(*same).bytes, std::byte{0xff});
    rewrite_blocks(traits.format, reinterpret_cast<const std::byte*>(random.bytes.data()), 50,
                   to.data());
    std::vector<double> values(random.values.size());
    decode_blocks(*same, to.data(), 50, values.data());
    EXPECT_EQ(values, random.values) << traits.name;
  }
  EXPECT_EQ(rewritten, 5);
}

TEST(BlockFormats, Mxfp4IsSplitIntoCodesAndScales) {
  const RandomBlocks random(BlockFormat::mxfp4, 50, 1, 9);
  std::vector<std::byte> codes(50 * 16), scales(50);
  split_mxfp4(reinterpret_cast<const std::byte*>(random.bytes.data()), 50, codes.data(),
              scales.data());
  for (std::size_t i = 0; i < random.values.size(); ++i) {
    const int code = std::to_integer<int>(codes[i / 2]) >> (i % 2 == 0 ? 0 : 4) & 15;
    const double scale = kernels::e8m0_value(std::to_integer<int>(scales[i / 32]));
    ASSERT_EQ(scale * kernels::e2m1_value(code), random.values[i]) << i;
  }
}

/// Returns where a block has its scale, and a second one that offsets are multiples of.
std::pair<std::size_t, std::optional<std::size_t>> scales_of(BlockFormat format) {
  using enum BlockFormat;
  if (format == q6_k) return {208, std::nullopt};
  if (format == q3_k) return {108, std::nullopt};
  if (format == q2_k) return {80, 82};
  if (format == tq1_0) return {52, std::nullopt};
  if (format == tq2_0) return {64, std::nullopt};
  const bool two = format == q4_k || format == q5_k || format == q4_1 || format == q5_1;
  return {0, two ? std::optional<std::size_t>(2) : std::nullopt};
}

// Scales of 0, subnormal ones, and those that are no numbers.
TEST(BlockFormats, KeepSpecialScales) {
  for (const auto& [format, name, elements, size] : block_format_table) {
    if (format == BlockFormat::mxfp4) continue;  // whose scales are powers of two
    const BlockFormatTraits& traits = block_traits(format);
    const auto [at, second] = scales_of(format);
    RandomBlocks random(format, 1, 1, 3);
    if (second) random.bytes.replace(*second, 2, std::string(2, '\0'));
    const auto with = [&, at = at](std::uint16_t scale) {
      std::string bytes = random.bytes;
      std::memcpy(bytes.data() + at, &scale, sizeof(scale));
      std::vector<double> values(traits.elements);
      decode_blocks(format, reinterpret_cast<const std::byte*>(bytes.data()), 1, values.data());
      return values;
    };
    for (const double value : with(0)) EXPECT_EQ(value, 0) << traits.name;
    const std::vector<double> one = with(0x3c00), least = with(0x0001);
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(least[i], one[i] * 0x1p-24);
    for (const double value : with(0x7c00)) EXPECT_FALSE(std::isfinite(value));
    for (const double value : with(0x7e00)) EXPECT_TRUE(std::isnan(value));
  }
}

}  // namespace
}  // namespace greta::test::block_formats_test
