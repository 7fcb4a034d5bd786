// Protects: the reader of NVIDIA's cubins. It returns the statistics of kernels and survives
// arbitrary bytes. The files were compiled from tests/data/cubin/two_kernels.cu; `ptxas -v`
// reported the same statistics.

#include "runtime/device/hip/cubin.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/layers.hpp"

namespace greta::test::cubin_test {

using namespace device::hip;
namespace {

using Binary = std::vector<std::byte>;

Binary cubin_of(const std::string& architecture) {
  std::ifstream in(GRETA_TEST_DATA "/cubin/two_kernels." + architecture + ".cubin",
                   std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  Binary binary(text.size());
  std::memcpy(binary.data(), text.data(), text.size());
  EXPECT_GT(binary.size(), 4096U);
  return binary;
}

KernelStatistics statistics_of(const std::string& architecture, const std::string& kernel) {
  return read_cubin_statistics(cubin_of(architecture), kernel).value();
}

TEST(Cubin, StatisticsAreTheKernelsOwn) {
  KernelStatistics small, large;
  small.registers = 8;
  small.code_bytes = 0x180;
  large.registers = 21;
  large.scratch_bytes = 400;
  large.shared_memory_bytes = 1024;
  large.code_bytes = 0x400;
  large.matrix_instructions = 3;
  EXPECT_EQ(statistics_of("sm_80", "small"), small);
  EXPECT_EQ(statistics_of("sm_80", "large"), large);
  small.registers = 10;
  large.registers = 26;
  EXPECT_EQ(statistics_of("sm_90", "small"), small);
  EXPECT_EQ(statistics_of("sm_90", "large"), large) << "without what the system reserves";
}

TEST(Cubin, AKernelThatIsNotThereIsNamed) {
  EXPECT_EQ(read_cubin_statistics(cubin_of("sm_90"), "absent").failure().message,
            "the cubin has no kernel absent");
  EXPECT_EQ(read_cubin_statistics({}, "small").failure().message, "this is not a cubin");
  Binary other = cubin_of("sm_90");
  other[18] = std::byte{224};  // the machine type of AMD
  EXPECT_EQ(read_cubin_statistics(other, "small").failure().message, "this is not a cubin");
}

TEST(Cubin, WhatEndsTooEarlyIsRefused) {
  const Binary whole = cubin_of("sm_90");
  std::size_t needed = 0;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const auto read = read_cubin_statistics(std::span(whole).first(size), "large");
    if (!read) {
      EXPECT_EQ(read.failure().status, Status::invalid_argument);
      needed = size + 1;
    }
  }
  EXPECT_GT(needed, whole.size() / 2) << "the table of sections is at the end";
  EXPECT_LE(needed, whole.size());
}

/// Random changes of bytes, mostly in the header, the symbols and attributes, and the section
/// table.
TEST(Cubin, NoBytesBreakTheReader) {
  std::mt19937_64 random(5);
  int refused = 0;
  for (const auto* architecture : {"sm_80", "sm_90"}) {
    const Binary whole = cubin_of(architecture);
    for (int round = 0; round < 20000; ++round) {
      Binary mutant = whole;
      const std::size_t reach = round % 3 == 0 ? 64 : round % 3 == 1 ? 2048 : 1600;
      const std::size_t first = round % 3 == 2 ? mutant.size() - reach : 0;
      for (std::uint64_t changes = random() % 8 + 1; changes > 0; --changes) {
        mutant[first + random() % reach] = static_cast<std::byte>(random());
      }
      if (!read_cubin_statistics(mutant, "large")) ++refused;
    }
  }
  EXPECT_GT(refused, 4000);
  EXPECT_LT(refused, 39000);
}

}  // namespace
}  // namespace greta::test::cubin_test
