#include <string>

#include "tuner/profile/figures.hpp"
#include "tuner/profile/formulas.hpp"

namespace greta::tuner {
namespace {

constexpr double kib = 1024;
constexpr double quad = 4;         // GFX9 counts time of waves in units of four clocks
constexpr double lds_width = 128;  // bytes that LDS moves a clock
constexpr const char* clocks = "GRBM_GUI_ACTIVE.max";
constexpr const char* wave_clocks = "SQ_WAVE_CYCLES.sum";

const std::vector<std::string> compute_units{"agent.cu_count"};
const std::vector<std::string> simds{"agent.cu_count", "agent.simd_per_cu"};
const std::vector<std::string> wave_slots{"agent.cu_count", "agent.simd_per_cu",
                                          "agent.max_waves_per_simd"};

/// On all GPUs. Bytes are those of AMD's own definition for the GPU, unless others come before.
std::vector<Formula> of_all() {
  return {
      {"memory_read_bytes", {"FETCH_SIZE.sum"}, kib},
      {"memory_read_bytes", {"FetchSize.sum"}, kib},
      {"memory_write_bytes", {"WRITE_SIZE.sum"}, kib},
      {"memory_write_bytes", {"WriteSize.sum"}, kib},
      {stall_figure("waitcnt"), {"SQ_WAIT_ANY.sum"}, 1, {wave_clocks}},
      {stall_figure("issue"), {"SQ_WAIT_INST_ANY.sum"}, 1, {wave_clocks}},
      {"counted_us", {"dispatch.ns"}, 1e-3},
  };
}

/// Requests of L2 to memory have 32, 64 or, on CDNA 3, 128 bytes: of reads, all but those of 32
/// bytes have 64, and those that "bubbles" count have 64 more.
std::vector<Formula> cdna_memory(const std::string& interface, bool wide) {
  std::vector<Term> read{{interface + "_RDREQ.sum", 64}, {interface + "_RDREQ_32B.sum", -32}};
  if (wide) read.emplace_back("TCC_BUBBLE.sum", 64);
  return {
      {"memory_read_bytes", read},
      {"memory_write_bytes", {{interface + "_WRREQ.sum", 32}, {interface + "_WRREQ_64B.sum", 32}}}};
}

std::vector<Formula> cdna() {
  constexpr double line = 128;  // bytes of L2
  const std::string lds = "SQ_LDS_IDX_ACTIVE.sum";
  return {
      {"l2_bytes", {"TCC_REQ.sum"}, line},
      {"l1_hit_share",
       {{"TCP_TOTAL_CACHE_ACCESSES.sum"},
        {"TCP_TCC_READ_REQ.sum", -1},
        {"TCP_TCC_ATOMIC_WITH_RET_REQ.sum", -1},
        {"TCP_TCC_ATOMIC_WITHOUT_RET_REQ.sum", -1}},
       1,
       {"TCP_TOTAL_CACHE_ACCESSES.sum"}},
      {"shared_conflict_share", {"SQ_LDS_BANK_CONFLICT.sum"}, 1, {lds}},
      {"matrix_share", {"SQ_VALU_MFMA_BUSY_CYCLES.sum"}, 1, {clocks}, simds},
      {"instructions", {"SQ_INSTS.sum"}},
  };
}

/// CDNA 2 and 3. The width of LDS differs on CDNA 4.
std::vector<Formula> cdna_lds() {
  const std::string lds = "SQ_LDS_IDX_ACTIVE.sum";
  return {
      {"shared_bytes", {lds}, lds_width},
      {"shared_bytes_per_clock", {lds}, lds_width, {clocks}, compute_units},
      {"shared_peak_bytes_per_clock", {clocks}, lds_width, {clocks}},
  };
}

/// CDNA 2, whose first cache has lines of 64 bytes.
std::vector<Formula> cdna2_l1() {
  constexpr double line = 64;
  return {
      {"l2_to_l1_bytes", {"TCP_TCC_READ_REQ.sum"}, line},
      {"l1_to_l2_bytes", {"TCP_TCC_WRITE_REQ.sum"}, line},
      {"l1_bytes", {"TCP_TOTAL_CACHE_ACCESSES.sum"}, line},
  };
}

std::vector<Formula> gfx9() {
  return {
      {"l2_hit_share", {"TCC_HIT.sum"}, 1, {"TCC_HIT.sum", "TCC_MISS.sum"}},
      {"fma_share", {"SQ_ACTIVE_INST_VALU.sum"}, quad, {clocks}, simds},
      {"occupancy_share", {wave_clocks}, quad, {clocks}, wave_slots},
  };
}

std::vector<Formula> rdna() {
  return {
      {"memory_read_bytes",
       {{"GL2C_EA_RDREQ_32B.sum", 32},
        {"GL2C_EA_RDREQ_64B.sum", 64},
        {"GL2C_EA_RDREQ_96B.sum", 96},
        {"GL2C_EA_RDREQ_128B.sum", 128}}},
      {"memory_write_bytes", {{"GL2C_MC_WRREQ.sum", 32}, {"GL2C_EA_WRREQ_64B.sum", 32}}},
      {"l2_hit_share", {"GL2C_HIT.sum"}, 1, {"GL2C_HIT.sum", "GL2C_MISS.sum"}},
      {"shared_conflict_share", {"SQC_LDS_BANK_CONFLICT.sum"}, 1, {"SQC_LDS_IDX_ACTIVE.sum"}},
      {"occupancy_share", {wave_clocks}, 1, {clocks}, wave_slots},
  };
}

}  // namespace

std::vector<FormulaSet> rocprofiler_formulas() {
  constexpr std::string_view source = "rocprofiler-sdk";
  return {
      {source, {"gfx94"}, cdna_memory("TCC_EA0", true)},
      {source, {"gfx900", "gfx908", "gfx90a"}, cdna_memory("TCC_EA", false)},
      {source, {"gfx90a", "gfx94", "gfx95"}, cdna()},
      {source, {"gfx90a", "gfx94"}, cdna_lds()},
      {source, {"gfx90a"}, cdna2_l1()},
      {source, {"gfx9"}, gfx9()},
      {source, {"gfx10", "gfx11", "gfx12"}, rdna()},
      {source, {}, of_all()},
  };
}

}  // namespace greta::tuner
