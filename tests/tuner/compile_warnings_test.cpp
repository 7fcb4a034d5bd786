#include <gtest/gtest.h>

#include "tuner/compile/compile_report.hpp"
#include "tuner/compile/target_compiler.hpp"

// Protects: what ptxas says of lost time reaches the user. Kernels of warpgroups were once compiled
// so that each product waited for the one before it, and nobody saw it.
namespace greta::tuner {
namespace {

constexpr auto serialised =
    "(C7520) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
    "program "
    "dependence on compiler-inserted WG.AR in divergent path in the function 'gemm_tma'";

TEST(PerformanceWarnings, AreThoseLinesOfPtxasOnce) {
  const std::string log = std::string("ptxas info    : ") + serialised +
                          "\nptxas info    : Used 222 registers\nptxas info    : " + serialised +
                          "\ngemm/tma(3): warning #177-D: variable was declared";
  EXPECT_EQ(performance_warnings(log), std::vector<std::string>{serialised});
  EXPECT_TRUE(performance_warnings("").empty());
  EXPECT_TRUE(performance_warnings("ptxas info    : Used 24 registers\n\n").empty());
}

TEST(PerformanceWarnings, AreInBothReports) {
  CompiledChoice choice;
  choice.plan.sources.resize(1);
  choice.plan.sources[0].name = "gemm/tma";
  choice.kernels.resize(1);
  choice.kernels[0].warnings = {serialised};
  const std::vector<CompileOutcome> outcomes{{Candidate{}, choice}};
  EXPECT_NE(compile_text({}, outcomes).find(std::string("warning: ") + serialised),
            std::string::npos);
  EXPECT_EQ(compile_json({}, outcomes)["configurations"][0]["kernels"][0]["warnings"],
            nlohmann::json::array({serialised}));
}

}  // namespace
}  // namespace greta::tuner
