#include <gtest/gtest.h>

#include "kernels/planning/plan.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"

// Protects: grids of plans. On hip-host they have short rows, so that small launches have
// workgroups past the last tile, as large ones have on GPUs.
namespace greta::test::grid_test {
namespace {

TEST(PlannedGrid, HasShortRowsOnHipHostOnly) {
  KernelSource kernel;
  kernel.block = {64, 1, 1};
  using Grid = std::array<std::uint32_t, 3>;
  const DeviceInfo& host = device("hip-host:0").info();
  EXPECT_EQ(grid(host, kernel, 61, 1), (Grid{61, 1, 1}));
  EXPECT_EQ(grid(host, kernel, 63, 2), (Grid{61, 2, 2}));
  EXPECT_EQ(grid(*architecture_info("sm_90"), kernel, 63, 2), (Grid{63, 1, 2}));
  const std::uint64_t many = 61 * std::uint64_t{host.max_grid[1]} + 1;
  const Grid large = grid(host, kernel, many, 1);
  EXPECT_LE(large[1], host.max_grid[1]);
  EXPECT_GE(std::uint64_t{large[0]} * large[1], many);
}

}  // namespace
}  // namespace greta::test::grid_test
