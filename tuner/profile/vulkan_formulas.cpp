#include "tuner/profile/formulas.hpp"

namespace greta::tuner {
namespace {

constexpr double hundredth = 0.01;

/// Mesa's driver of AMD GPUs, which has counters on RDNA 2 and 3. Its hit ratios are hundredth with
/// the unit of bytes. Its "VRAM write size" takes a request of 64 bytes for 96, and is not used.
std::vector<Formula> radv() {
  return {
      {"memory_read_bytes", {"VRAM read size [bytes]"}},
      {"l2_hit_share", {"L2 cache hit ratio [%]"}, hundredth},
      {"l2_hit_share", {"L2 cache hit ratio [bytes]"}, hundredth},
      {"l1_hit_share", {"L0 cache hit ratio [%]"}, hundredth},
      {"l1_hit_share", {"L0 cache hit ratio [bytes]"}, hundredth},
      {"fma_share", {"VALU Busy [%]"}, hundredth},
      {"instructions", {"Instructions"}},
  };
}

/// Mesa's driver of Intel GPUs. Its bytes of memory cross the interface between the GPU and the
/// rest of the system (GTI).
std::vector<Formula> anv() {
  return {
      {"memory_read_bytes", {"GTI Read Throughput [bytes]"}},
      {"memory_write_bytes", {"GTI Write Throughput [bytes]"}},
      {"shared_bytes", {"SLM Bytes Read [bytes]", "SLM Bytes Written [bytes]"}},
      {"fma_share", {"EU FPU0 Pipe Active [%]"}, hundredth},
      {"occupancy_share", {"EU Thread Occupancy [%]"}, hundredth},
      {"counted_us", {"GPU Time Elapsed [ns]"}, 1e-3},
  };
}

}  // namespace

std::vector<FormulaSet> vulkan_formulas() {
  return {{"VK_KHR_performance_query of radv", {}, radv()},
          {"VK_KHR_performance_query of anv", {}, anv()}};
}

}  // namespace greta::tuner
