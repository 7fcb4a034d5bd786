// Protects: the arithmetic from the counters of AMD's GPUs, of RADV and of ANV to figures: units,
// weights of requests of different sizes, and the numbers of the GPU that shares are of. What a GPU
// counts otherwise gives no figure.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers.hpp"
#include "tuner/profile/figures.hpp"

namespace greta::test::formulas_test {
namespace {

using Values = std::map<std::string, double>;

/// Returns the figures, rounded to a millionth.
Values figures_from(const std::string& source, const std::string& chip, const Values& values) {
  CounterReading reading{.source = {source, chip}, .values = values, .passes = 2};
  Values figures = figures_of(reading, true).figures;
  for (auto& [name, value] : figures) value = std::round(value * 1e6) / 1e6;
  return figures;
}

/// An accelerator of 100 compute units.
const Values gpu{{"agent.cu_count", 100},
                 {"agent.simd_per_cu", 4},
                 {"agent.max_waves_per_simd", 8},
                 {"GRBM_GUI_ACTIVE.max", 1000}};

Values with(Values values, const Values& more) {
  values.insert(more.begin(), more.end());
  return values;
}

Values of_amd(const std::string& chip, const Values& values) {
  return figures_from("rocprofiler-sdk 1.0", chip, with(gpu, values));
}

TEST(Formulas, BytesOfMemoryAreThoseOfRequestsOfAllSizes) {
  // 10 requests: 2 of 32 bytes, 3 of 128 and 5 of 64.
  const Values cdna3{{"TCC_EA0_RDREQ.sum", 10},    {"TCC_EA0_RDREQ_32B.sum", 2},
                     {"TCC_BUBBLE.sum", 3},        {"TCC_EA0_WRREQ.sum", 7},
                     {"TCC_EA0_WRREQ_64B.sum", 4}, {"FETCH_SIZE.sum", 1}};
  const Values expected{{"memory_read_bytes", 2 * 32 + 3 * 128 + 5 * 64},
                        {"memory_write_bytes", 4 * 64 + 3 * 32}};
  Values found = of_amd("gfx942", cdna3);
  found.erase("shared_peak_bytes_per_clock");
  EXPECT_EQ(found, expected);
  found = of_amd("gfx90a", {{"TCC_EA_RDREQ.sum", 10},
                            {"TCC_EA_RDREQ_32B.sum", 4},
                            {"TCC_BUBBLE.sum", 3},
                            {"TCC_EA_WRREQ.sum", 7},
                            {"TCC_EA_WRREQ_64B.sum", 7}});
  EXPECT_EQ(found["memory_read_bytes"], 4 * 32 + 6 * 64);
  EXPECT_EQ(found["memory_write_bytes"], 7 * 64);
  found = of_amd("gfx1100", {{"GL2C_EA_RDREQ_32B.sum", 1},
                             {"GL2C_EA_RDREQ_64B.sum", 10},
                             {"GL2C_EA_RDREQ_96B.sum", 100},
                             {"GL2C_EA_RDREQ_128B.sum", 1000},
                             {"GL2C_MC_WRREQ.sum", 5},
                             {"GL2C_EA_WRREQ_64B.sum", 1}});
  EXPECT_EQ(found, (Values{{"memory_read_bytes", 32 + 640 + 9600 + 128000},
                           {"memory_write_bytes", 64 + 4 * 32}}));
  // AMD's own definition, in KiB, where no formula is known: requests of CDNA 4 have other sizes.
  EXPECT_EQ(of_amd("gfx950", with(cdna3, {{"WRITE_SIZE.sum", 2}})),
            (Values{{"memory_read_bytes", 1024}, {"memory_write_bytes", 2048}}));
}

TEST(Formulas, SharesOfCdnaAreOfAllUnitsForTheTimeOfTheDispatch) {
  Values found = of_amd("gfx942", {{"SQ_VALU_MFMA_BUSY_CYCLES.sum", 300'000},
                                   {"SQ_ACTIVE_INST_VALU.sum", 25'000},
                                   {"SQ_WAVE_CYCLES.sum", 400'000},
                                   {"SQ_WAIT_ANY.sum", 100'000},
                                   {"SQ_WAIT_INST_ANY.sum", 40'000},
                                   {"SQ_LDS_IDX_ACTIVE.sum", 60'000},
                                   {"SQ_LDS_BANK_CONFLICT.sum", 6'000},
                                   {"SQ_INSTS.sum", 12},
                                   {"TCC_HIT.sum", 30},
                                   {"TCC_MISS.sum", 10},
                                   {"TCC_REQ.sum", 40},
                                   {"TCP_TOTAL_CACHE_ACCESSES.sum", 100},
                                   {"TCP_TCC_READ_REQ.sum", 20},
                                   {"TCP_TCC_ATOMIC_WITH_RET_REQ.sum", 3},
                                   {"TCP_TCC_ATOMIC_WITHOUT_RET_REQ.sum", 2},
                                   {"dispatch.ns", 2500}});
  EXPECT_EQ(found, (Values{{"matrix_share", 0.75},    // of 400 SIMDs
                           {"fma_share", 0.25},       // in units of 4 clocks
                           {"occupancy_share", 0.5},  // likewise, of 3200 waves
                           {"stall_waitcnt_share", 0.25},
                           {"stall_issue_share", 0.1},
                           {"shared_bytes", 60'000 * 128},
                           {"shared_bytes_per_clock", 76.8},
                           {"shared_peak_bytes_per_clock", 128},
                           {"shared_conflict_share", 0.1},
                           {"instructions", 12},
                           {"l2_hit_share", 0.75},
                           {"l2_bytes", 5120},
                           {"l1_hit_share", 0.75},
                           {"counted_us", 2.5}}));
}

TEST(Formulas, RdnaCountsWavesInClocks) {
  Values waves{{"SQ_WAVE_CYCLES.sum", 1'600'000},
               {"SQC_LDS_BANK_CONFLICT.sum", 5},
               {"SQC_LDS_IDX_ACTIVE.sum", 20},
               {"GL2C_HIT.sum", 3},
               {"GL2C_MISS.sum", 1},
               {"SQ_ACTIVE_INST_VALU.sum", 1}};
  EXPECT_EQ(
      of_amd("gfx1100", waves),
      (Values{{"occupancy_share", 0.5}, {"shared_conflict_share", 0.25}, {"l2_hit_share", 0.75}}));
}

TEST(Formulas, AShareOfAGpuWhoseUnitsAreUnknownIsAbsent) {
  EXPECT_TRUE(figures_from("rocprofiler-sdk 1.0", "gfx942",
                           {{"SQ_VALU_MFMA_BUSY_CYCLES.sum", 1}, {"GRBM_GUI_ACTIVE.max", 1000}})
                  .count("matrix_share") == 0);
}

TEST(Formulas, OfVulkanAreThoseOfTheDriver) {
  const Values counters{{"VRAM read size [bytes]", 4096},
                        {"VRAM write size [bytes]", 4096},
                        {"L2 cache hit ratio [bytes]", 75},
                        {"L1 cache hit ratio [bytes]", 10},
                        {"L0 cache hit ratio [bytes]", 50},
                        {"VALU Busy [%]", 80},
                        {"Instructions", 1000},
                        {"GTI Read Throughput [bytes]", 1},
                        {"SLM Bytes Read [bytes]", 2},
                        {"SLM Bytes Written [bytes]", 3},
                        {"EU Thread Occupancy [%]", 62.5},
                        {"EU FPU0 Pipe Active [%]", 25},
                        {"GPU Time Elapsed [ns]", 1500}};
  EXPECT_EQ(figures_from("VK_KHR_performance_query of radv", "gfx1030", counters),
            (Values{{"memory_read_bytes", 4096},
                    {"l2_hit_share", 0.75},
                    {"l1_hit_share", 0.5},
                    {"fma_share", 0.8},
                    {"instructions", 1000}}));
  EXPECT_EQ(figures_from("VK_KHR_performance_query of anv", "", counters),
            (Values{{"memory_read_bytes", 1},
                    {"shared_bytes", 5},
                    {"occupancy_share", 0.625},
                    {"fma_share", 0.25},
                    {"counted_us", 1.5}}));
  EXPECT_TRUE(figures_from("VK_KHR_performance_query of turnip", "", counters).empty());
}

}  // namespace
}  // namespace greta::test::formulas_test
