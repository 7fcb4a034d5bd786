#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <string_view>

#include "runtime/device/hip/matrix_library.hpp"

namespace greta::device::hip {

namespace {

// By cublasLtMatmulTile_t: rows and columns of D as the library has it, so columns and rows of a
// row-major D. Later tiles are not documented by number.
constexpr std::array<std::string_view, 36> tiles{
    "",       "8x8",    "8x16",    "16x8",    "8x32",    "16x16",   "32x8",    "8x64",   "16x32",
    "32x16",  "64x8",   "32x32",   "32x64",   "64x32",   "32x128",  "64x64",   "128x32", "64x128",
    "128x64", "64x256", "128x128", "256x64",  "64x512",  "128x256", "256x128", "512x64", "64x96",
    "96x64",  "96x128", "128x160", "160x128", "192x128", "128x192", "128x96",  "32x256", "256x32"};
// By cublasLtMatmulStages_t, from 25 on: elements of K and the number of buffers.
constexpr std::array<std::string_view, 12> later_stages{
    "32x10", "8x4",    "16x10",   "8x5",     "",        "",
    "8x3",   "8xauto", "16xauto", "32xauto", "64xauto", "128xauto"};
// By cublasLtClusterShape_t.
constexpr std::array<std::string_view, 17> clusters{
    "auto",  "",      "1x1x1", "2x1x1", "4x1x1", "1x2x1", "2x2x1",  "4x2x1", "1x4x1",
    "2x4x1", "4x4x1", "8x1x1", "1x8x1", "8x2x1", "2x8x1", "16x1x1", "1x16x1"};

/// Returns the name of a number; names[0] is that of `first`, which is not larger.
template <std::size_t size>
std::string name_in(const std::array<std::string_view, size>& names, std::uint32_t number,
                    std::uint32_t first = 0) {
  const std::uint32_t at = number - first;
  const bool known = at < size && !names[at].empty();
  return known ? std::string(names[at]) : fmt::format("number {}", number);
}

std::string stages_text(std::uint32_t number) {
  constexpr std::uint32_t of_each = 6, first_later = 25;
  if (number >= first_later) return name_in(later_stages, number, first_later);
  return number == 0
             ? "number 0"
             : fmt::format("{}x{}", 16U << (number - 1) / of_each, (number - 1) % of_each + 1);
}

std::string reduction_text(std::uint32_t reduction) {
  return reduction == reduction_none  ? ""
         : reduction == reduction_f32 ? " summed in f32"
                                      : fmt::format(" reduction {}", reduction);
}

}  // namespace

std::string text_of_algorithm(const MatrixLibraryFunctions& functions, const void* algorithm) {
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
  add(AlgorithmSetting::tile, [](auto tile) { return "tile " + name_in(tiles, tile); });
  add(AlgorithmSetting::stages, [](auto number) { return "stages " + stages_text(number); });
  const auto reduction = read(AlgorithmSetting::reduction, std::uint32_t{0});
  add(AlgorithmSetting::slices, [&](auto slices) {
    return fmt::format("{} slice{}{}", slices, slices == 1 ? "" : "s",
                       reduction_text(slices > 1 ? reduction.value_or(0) : 0));
  });
  add(AlgorithmSetting::swizzling, [](auto number) { return fmt::format("swizzling {}", number); });
  if (const auto cluster = read(AlgorithmSetting::cluster, std::uint16_t{0})) {
    words.push_back("cluster " + name_in(clusters, *cluster));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace greta::device::hip
