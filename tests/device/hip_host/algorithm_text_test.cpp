// Protects: the text that reports show of the settings of a library's algorithm.

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "runtime/device/hip/matrix_library.hpp"
#include "tests/layers.hpp"

namespace greta::test::algorithm_text_test {
namespace {

/// Returns the text of an algorithm with these settings, by number; others are unknown.
std::string text_of(const std::map<int, std::uint32_t>& settings, DType sums = DType::f32) {
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
  return hip::text_of_algorithm(functions, &settings, sums);
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
  EXPECT_EQ(text_of({{2, 4}, {3, 2}}, DType::i32), "4 slices summed in i32");
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

}  // namespace
}  // namespace greta::test::algorithm_text_test
