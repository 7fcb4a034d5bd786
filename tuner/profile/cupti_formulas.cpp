#include <utility>

#include "tuner/profile/figures.hpp"
#include "tuner/profile/formulas.hpp"

namespace greta::tuner {
namespace {

constexpr double percent = 0.01;

std::string active(const std::string& counter) {
  return counter + ".avg.pct_of_peak_sustained_active";
}

/// Each reason as a share of all the warps' cycles. Of the averages per issued instruction, those
/// of all reasons together are the warps that are active.
std::vector<Formula> cupti_stalls() {
  const auto ratio = [](std::string_view reason) {
    return "smsp__average_warps_issue_stalled_" + std::string(reason) + "_per_issue_active.ratio";
  };
  std::vector<Formula> formulas;
  for (const StallReason& reason : stall_reasons()) {
    if (reason.name == "waitcnt" || reason.name == "issue") continue;  // of AMD GPUs
    formulas.push_back({stall_figure(reason.name),
                        {ratio(reason.name)},
                        1,
                        {"smsp__average_warps_active_per_issue_active.ratio"}});
  }
  return formulas;
}

std::vector<Formula> of_cupti() {
  constexpr double sector = 32, wavefront = 128;  // bytes
  const std::string shared = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
  const std::string conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
  const std::string cycles = "sm__cycles_active.sum";
  std::vector<Formula> all{
      {"memory_read_bytes", {"dram__bytes_read.sum"}},
      {"memory_read_bytes", {"dram__bytes_op_read.sum"}},
      {"memory_write_bytes", {"dram__bytes_write.sum"}},
      {"memory_write_bytes", {"dram__bytes_op_write.sum"}},
      {"l2_bytes", {"lts__t_bytes.sum"}},
      {"l2_bytes", {"lts__t_sectors.sum"}, sector},
      {"l2_hit_share", {"lts__t_sector_hit_rate.pct"}, percent},
      {"l2_share", {"lts__t_sectors.avg.pct_of_peak_sustained_elapsed"}, percent},
      {"l2_to_l1_bytes", {"l1tex__m_xbar2l1tex_read_bytes.sum"}},
      {"l1_to_l2_bytes", {"l1tex__m_l1tex2xbar_write_bytes.sum"}},
      {"l1_bytes", {"l1tex__t_bytes.sum"}},
      {"l1_hit_share", {"l1tex__t_sector_hit_rate.pct"}, percent},
      {"l1_share", {active("l1tex__data_pipe_lsu_wavefronts")}, percent},
      {"shared_bytes", {shared}, wavefront},
      {"shared_bytes_per_clock", {shared}, wavefront, {cycles}},
      {"shared_peak_bytes_per_clock", {cycles}, wavefront, {cycles}},
      {"shared_conflict_share", {conflicts}, 1, {shared}},
      {"matrix_share", {active("sm__pipe_tensor_cycles_active")}, percent},
      {"matrix_share", {active("sm__pipe_tensor_op_hmma_cycles_active")}, percent},
      {"matrix_share", {active("sm__inst_executed_pipe_tensor")}, percent},
      {"fma_share", {active("sm__pipe_fma_cycles_active")}, percent},
      {"fma_share", {active("sm__inst_executed_pipe_fma")}, percent},
      {"alu_share", {active("sm__pipe_alu_cycles_active")}, percent},
      {"alu_share", {active("sm__inst_executed_pipe_alu")}, percent},
      {"memory_unit_share", {active("sm__inst_executed_pipe_lsu")}, percent},
      {"issue_share", {active("smsp__issue_active")}, percent},
      {"instructions", {"smsp__inst_executed.sum"}},
      {"occupancy_share", {active("sm__warps_active")}, percent},
      {"balance_share", {"sm__cycles_active.avg"}, 1, {"sm__cycles_active.max"}},
      {"counted_us", {"gpu__time_duration.sum"}, 1e-3},
  };
  for (Formula& formula : cupti_stalls()) all.push_back(std::move(formula));
  return all;
}

}  // namespace

FormulaSet cupti_formulas() {
  return {.source = "CUPTI", .chips = {}, .formulas = of_cupti()};
}

}  // namespace greta::tuner
