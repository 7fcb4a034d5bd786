#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/hip/matrix_library.hpp"

namespace greta::device::hip {

namespace {

// By cublasLtMatmulTile_t: rows and columns of D as the library has it, so columns and rows of a
// row-major D. all_tiles() has the later ones.
constexpr std::array<std::string_view, 36> first_tiles{
    "",       "8x8",    "8x16",    "16x8",    "8x32",    "16x16",   "32x8",    "8x64",   "16x32",
    "32x16",  "64x8",   "32x32",   "32x64",   "64x32",   "32x128",  "64x64",   "128x32", "64x128",
    "128x64", "64x256", "128x128", "256x64",  "64x512",  "128x256", "256x128", "512x64", "64x96",
    "96x64",  "96x128", "128x160", "160x128", "192x128", "128x192", "128x96",  "32x256", "256x32"};
// By cublasLtMatmulStages_t, from 25 on: elements of K and the number of buffers.
constexpr std::array<std::string_view, 14> later_stages{
    "32x10",  "8x4",     "16x10",   "8x5",     "",         "",         "8x3",
    "8xauto", "16xauto", "32xauto", "64xauto", "128xauto", "256xauto", "768xauto"};
// By cublasLtClusterShape_t.
constexpr std::array<std::string_view, 52> clusters{
    "auto",   "",       "1x1x1",  "2x1x1",  "4x1x1",  "1x2x1",  "2x2x1",  "4x2x1",  "1x4x1",
    "2x4x1",  "4x4x1",  "8x1x1",  "1x8x1",  "8x2x1",  "2x8x1",  "16x1x1", "1x16x1", "3x1x1",
    "5x1x1",  "6x1x1",  "7x1x1",  "9x1x1",  "10x1x1", "11x1x1", "12x1x1", "13x1x1", "14x1x1",
    "15x1x1", "3x2x1",  "5x2x1",  "6x2x1",  "7x2x1",  "1x3x1",  "2x3x1",  "3x3x1",  "4x3x1",
    "5x3x1",  "3x4x1",  "1x5x1",  "2x5x1",  "3x5x1",  "1x6x1",  "2x6x1",  "1x7x1",  "2x7x1",
    "1x9x1",  "1x10x1", "1x11x1", "1x12x1", "1x13x1", "1x14x1", "1x15x1"};

/// Returns the names of tiles by number. After first_tiles there are those of the multiples of 8 x
/// 64 up to a size that have none yet, those of 64 x 8, and four more.
std::vector<std::string> all_tiles() {
  std::vector<std::string> all(first_tiles.begin(), first_tiles.end());
  const auto add_multiples = [&](int of_rows, int of_columns, int most) {
    constexpr int longest = 768;
    const std::vector<std::string> earlier = all;
    for (int rows = of_rows; rows <= longest; rows += of_rows) {
      for (int cols = of_columns; cols <= std::min(longest, most / rows); cols += of_columns) {
        const std::string name = fmt::format("{}x{}", rows, cols);
        if (std::find(earlier.begin(), earlier.end(), name) == earlier.end()) all.push_back(name);
      }
    }
  };
  add_multiples(8, 64, 64 * 768);
  add_multiples(64, 8, 64 * 1024);
  for (const char* name : {"256x512", "256x1024", "512x512", "512x1024"}) all.emplace_back(name);
  return all;
}

/// Returns the name of a number; names[0] is that of `first`, which is not larger.
template <typename Names>
std::string name_in(const Names& names, std::uint32_t number, std::uint32_t first = 0) {
  const std::uint32_t at = number - first;
  const bool known = at < names.size() && !names[at].empty();
  return known ? std::string(names[at]) : fmt::format("number {}", number);
}

std::string tile_text(std::uint32_t number) {
  static const std::vector<std::string> names = all_tiles();
  return name_in(names, number);
}

std::string stages_text(std::uint32_t number) {
  constexpr std::uint32_t of_each = 6, first_later = 25;
  if (number >= first_later) return name_in(later_stages, number, first_later);
  return number == 0
             ? "number 0"
             : fmt::format("{}x{}", 16U << (number - 1) / of_each, (number - 1) % of_each + 1);
}

std::string reduction_text(std::uint32_t reduction, DType sums) {
  if (reduction == reduction_none) return "";
  return reduction == reduction_in_sums ? fmt::format(" summed in {}", to_string(sums))
                                        : fmt::format(" reduction {}", reduction);
}

}  // namespace

std::string text_of_algorithm(const MatrixLibraryFunctions& functions, const void* algorithm,
                              DType sums) {
  if (functions.algorithm_get == nullptr) return "";
  const auto read = [&](AlgorithmSetting setting, auto value) -> std::optional<std::uint32_t> {
    std::size_t written = 0;
    const auto status = functions.algorithm_get(algorithm, static_cast<int>(setting), &value,
                                                sizeof value, &written);
    if (status != 0) return std::nullopt;
    return value;
  };
  std::vector<std::string> words;
  const auto add = [&](AlgorithmSetting setting, auto text) {
    if (const auto value = read(setting, std::uint32_t{0})) words.push_back(text(*value));
  };
  add(AlgorithmSetting::id, [](auto id) { return fmt::format("algorithm {}", id); });
  add(AlgorithmSetting::tile, [](auto tile) { return "tile " + tile_text(tile); });
  add(AlgorithmSetting::stages, [](auto number) { return "stages " + stages_text(number); });
  const auto reduction = read(AlgorithmSetting::reduction, std::uint32_t{0});
  add(AlgorithmSetting::slices, [&](auto slices) {
    return fmt::format("{} slice{}{}", slices, slices == 1 ? "" : "s",
                       reduction_text(slices > 1 ? reduction.value_or(0) : 0, sums));
  });
  add(AlgorithmSetting::swizzling, [](auto number) { return fmt::format("swizzling {}", number); });
  if (const auto cluster = read(AlgorithmSetting::cluster, std::uint16_t{0})) {
    words.push_back("cluster " + name_in(clusters, *cluster));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace greta::device::hip
